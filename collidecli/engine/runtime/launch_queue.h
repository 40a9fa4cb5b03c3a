// C++ of launch_queue.py, by section. The compiler of a kernel reads it: ${NAME} is a value of the module.
// == execute_each_step
    typedef void (*Entry)(wp::uint64, wp::uint64, wp::uint64);
    for (int i = 0; i < count; ++i) {
        const wp::uint64* one = step.data + 4 * i;
        if (one[0] != 0) {
            ((Entry)one[0])(one[1], one[2], one[3]);
            continue;
        }
        const int* value = (const int*)one[1];
        int* end = (int*)one[3];
        int total = 0;
        for (wp::uint64 k = 0; k < one[2]; ++k) {
            total += value[k];
            end[k] = total;
        }
    }
