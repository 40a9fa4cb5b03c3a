// C++ of array_loops.py, by section. The compiler of a kernel reads it: ${NAME} is a value of the module.
// == shuffle
${_ROW}${_VECTORS}
    const unsigned char* numbers = (const unsigned char*)job[0];
    unsigned char* planes = (unsigned char*)job[1];
    const long long count = job[2], size = job[3], stride = job[4];
    long long k = 0;
    if (size == 4)
        for (; k + ${_AT_ONCE} <= count; k += ${_AT_ONCE}) {
            const bytes64 v = *(const bytes64*)(numbers + 4 * k);
            ${_SHUFFLE_4}
        }
    else if (size == 8)
        for (; k + ${_AT_ONCE} <= count; k += ${_AT_ONCE}) {
            const bytes64 v = *(const bytes64*)(numbers + 8 * k), w = *(const bytes64*)(numbers + 8 * k + 64);
            ${_SHUFFLE_8}
        }
    for (; k < count; ++k)
        for (long long plane = 0; plane < size; ++plane)
            planes[plane * stride + k] = numbers[k * size + plane];
// == sum_words
${_ROW}
    typedef unsigned short word16 __attribute__((aligned(1)));
    const word16* word = (const word16*)job[0];
    const long long bytes = job[1], count = bytes / 2;
    unsigned long long total = 0, weighted = 0;
    long long done = 0;
    while (count - done >= ${_LANES}) {
        unsigned int sum[${_LANES}] = {0}, running[${_LANES}] = {0};
        const long long whole = (count - done) / ${_LANES}, rows = whole < ${_ROWS} ? whole : ${_ROWS};
        for (long long row = 0; row < rows; ++row, word += ${_LANES})
            for (int lane = 0; lane < ${_LANES}; ++lane) {
                sum[lane] += word[lane];
                running[lane] += sum[lane];
            }
        unsigned long long plain = 0, above = 0, beside = 0;
        for (int lane = 0; lane < ${_LANES}; ++lane) {
            plain += sum[lane];
            above += running[lane];
            beside += (unsigned long long)lane * sum[lane];
        }
        // Words before these weigh one more for each of these; one of these as many as follow it, and itself.
        weighted = (weighted + total * (unsigned long long)(rows * ${_LANES}) + above * ${_LANES} - beside) % 65535;
        total = total + plain ? (total + plain - 1) % 65535 + 1 : 0;  // 0 of zeros alone
        done += rows * ${_LANES};
    }
    for (; done < count; ++done, ++word) {
        total += *word;
        weighted += total;
    }
    if (bytes % 2) {
        total += *(const unsigned char*)word;
        weighted += total;
    }
    job[2] = total;
    job[3] = weighted % 65535;
// == normalize
${_ROW}
    typedef double lanes __attribute__((vector_size((8 * ${_POSES}))));
    double* pose = (double*)job[0];
    const long long count = job[1];
    const double limit = bounds.data[0], tolerance = bounds.data[1], kept = bounds.data[2];
    for (long long first = 0; first < count; first += ${_POSES}, pose += 7 * ${_POSES}) {
        #pragma clang fp contract(off)  // the last bit does not depend on who normalizes
        const int here = count - first < ${_POSES} ? count - first : ${_POSES};
        lanes part[7];
        for (int i = 0; i < 7; ++i)
            for (int k = 0; k < ${_POSES}; ++k)
                part[i][k] = pose[7 * (k < here ? k : 0) + i];
        lanes norm = part[3] * part[3];
        for (int i = 4; i < 7; ++i)
            norm += part[i] * part[i];
        norm = __builtin_elementwise_sqrt(norm);
        const lanes off = __builtin_elementwise_abs(norm - 1.0);
        auto sound = off <= tolerance;
        for (int i = 0; i < 3; ++i)
            sound &= __builtin_elementwise_abs(part[i]) <= limit;
        if (__builtin_reduce_and(sound) == 0) {
            job[2] = 0;
            return;
        }
        norm = off <= kept ? lanes{} + 1.0 : norm;
        for (int i = 3; i < 7; ++i) {
            part[i] /= norm;
            for (int k = 0; k < here; ++k)
                pose[7 * k + i] = part[i][k];
        }
    }
    job[2] = 1;
