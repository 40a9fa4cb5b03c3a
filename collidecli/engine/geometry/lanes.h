// C++ of lanes.py, by section. The compiler of a kernel reads it: ${NAME} is a value of the module.
// == prelude
#if defined(__clang__) && !defined(__CUDA_ARCH__)
    #define MAGNITUDE(x) __builtin_elementwise_abs(x)
    #define GREATER(x, y) __builtin_elementwise_max(x, y)
    #define LESSER(x, y) __builtin_elementwise_min(x, y)
    #define ROOT(x) __builtin_elementwise_sqrt(x)
    #if !defined(SCALAR_LANES)
    #define VECTOR_LANES
    typedef double Doubles __attribute__((ext_vector_type(${LANE_STEP}), aligned(8)));
    typedef float Floats __attribute__((ext_vector_type(${LANE_STEP}), aligned(4)));
    #endif
#else
    #define MAGNITUDE(x) fabs(x)
    #define GREATER(x, y) max(x, y)
    #define LESSER(x, y) min(x, y)
    #define ROOT(x) sqrt(x)
#endif
// == load
#if defined(VECTOR_LANES)
    const auto transposed = [](Doubles* c) {
        const Doubles a = __builtin_shufflevector(c[0], c[1], 0, 4, 2, 6);
        const Doubles b = __builtin_shufflevector(c[0], c[1], 1, 5, 3, 7);
        const Doubles d = __builtin_shufflevector(c[2], c[3], 0, 4, 2, 6);
        const Doubles e = __builtin_shufflevector(c[2], c[3], 1, 5, 3, 7);
        c[0] = __builtin_shufflevector(a, d, 0, 1, 4, 5);
        c[1] = __builtin_shufflevector(b, e, 0, 1, 4, 5);
        c[2] = __builtin_shufflevector(a, d, 2, 3, 6, 7);
        c[3] = __builtin_shufflevector(b, e, 2, 3, 6, 7);
    };
#endif
    // Seven numbers of each lane's pose, from the addresses of the poses; the fourth is read twice.
    const auto load = [&](auto* out, const double* const* address) {
        if constexpr (sizeof(out[0]) == sizeof(double)) {
            for (int k = 0; k < 7; ++k)
                out[k] = address[0][k];
        }
#if defined(VECTOR_LANES)
        else {
            Doubles low[4], high[4];
            for (int lane = 0; lane < ${LANE_STEP}; ++lane) {
                low[lane] = *(const Doubles*)address[lane];
                high[lane] = *(const Doubles*)(address[lane] + 3);
            }
            transposed(low);
            transposed(high);
            for (int k = 0; k < 4; ++k) {
                out[k] = low[k];
                out[k + 3] = high[k];
            }
        }
#endif
    };
// == composition
    // a * b, as Warp's transform_multiply.
    const auto compose = [](const auto* a, const auto* b, auto* out) {
        const auto c = 2.0 * a[6] * a[6] - 1.0;
        const auto d = 2.0 * (a[3] * b[0] + a[4] * b[1] + a[5] * b[2]);
        out[0] = b[0] * c + a[3] * d + (a[4] * b[2] - a[5] * b[1]) * a[6] * 2.0 + a[0];
        out[1] = b[1] * c + a[4] * d + (a[5] * b[0] - a[3] * b[2]) * a[6] * 2.0 + a[1];
        out[2] = b[2] * c + a[5] * d + (a[3] * b[1] - a[4] * b[0]) * a[6] * 2.0 + a[2];
        out[3] = a[6] * b[3] + b[6] * a[3] + a[4] * b[5] - b[4] * a[5];
        out[4] = a[6] * b[4] + b[6] * a[4] + a[5] * b[3] - b[5] * a[3];
        out[5] = a[6] * b[5] + b[6] * a[5] + a[3] * b[4] - b[3] * a[4];
        out[6] = a[6] * b[6] - a[3] * b[3] - a[4] * b[4] - a[5] * b[5];
    };
// == rotation
    // Rotation of x by the quaternion q, as Warp's quat_rotate; with sign -1 by its inverse, as quat_rotate_inv.
    const auto rotate = [](const auto* q, const auto* x, double sign, auto* out) {
        const auto c = 2.0 * q[3] * q[3] - 1.0;
        const auto d = 2.0 * (q[0] * x[0] + q[1] * x[1] + q[2] * x[2]);
        out[0] = x[0] * c + q[0] * d + sign * ((q[1] * x[2] - q[2] * x[1]) * q[3] * 2.0);
        out[1] = x[1] * c + q[1] * d + sign * ((q[2] * x[0] - q[0] * x[2]) * q[3] * 2.0);
        out[2] = x[2] * c + q[2] * d + sign * ((q[0] * x[1] - q[1] * x[0]) * q[3] * 2.0);
    };
