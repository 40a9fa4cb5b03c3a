// C++ of lane_tests.py, by section. The compiler of a kernel reads it: ${NAME} is a value of the module.
// == vectors
${PRELUDE}
#if defined(VECTOR_LANES)
    typedef float Eight __attribute__((ext_vector_type(${LANES}), aligned(4)));
    typedef bool Flags __attribute__((ext_vector_type(${LANES})));
#endif
    const auto numbers_of = [&](int instance) {
        return bound.data + (instance / ${LANES}) * (${BOUND_NUMBERS} * ${LANES}) + instance % ${LANES};
    };
// == bits
    const auto bits = [](auto condition) -> unsigned int {
        if constexpr (sizeof(condition) <= sizeof(int))
            return condition ? 1u : 0u;
#if defined(VECTOR_LANES)
        else
            return __builtin_bit_cast(unsigned char, __builtin_convertvector(condition, Flags));
#endif
    };
// == double_bits
    const auto bits = [](auto condition) -> unsigned int {
        if constexpr (sizeof(condition) <= sizeof(int)) {
            return condition ? 1u : 0u;
        }
#if defined(VECTOR_LANES)
        else {
            typedef bool Flags __attribute__((ext_vector_type(4)));
            return (unsigned int)__builtin_bit_cast(unsigned char, __builtin_convertvector(condition, Flags)) & 15u;
        }
#endif
    };
// == tests
${BITS}
    // Bit k: whether the bounds of lane k overlap; `one` and `other` are the first lanes of both instances.
    const auto overlap = [&](auto zero, const float* one, const float* other) {
        typedef decltype(zero) Many;
        const auto read = [](const float* number, int k) { return *(const Many*)(number + k * ${LANES}); };
        const Many x = read(one, ${CENTER}) - read(other, ${CENTER});
        const Many y = read(one, (${CENTER} + 1)) - read(other, (${CENTER} + 1));
        const Many z = read(one, (${CENTER} + 2)) - read(other, (${CENTER} + 2));
        const Many r = (read(one, ${RADIUS}) + read(other, ${RADIUS})) * ${RADIUS_SLACK}f;
        const unsigned int balls = bits(x * x + y * y + z * z < r * r);
        if (balls == 0)
            return 0u;
        const auto below = bits(read(one, ${LOWER}) < read(other, ${UPPER}))
            & bits(read(one, (${LOWER} + 1)) < read(other, (${UPPER} + 1)))
            & bits(read(one, (${LOWER} + 2)) < read(other, (${UPPER} + 2)));
        const auto above = bits(read(one, ${UPPER}) > read(other, ${LOWER}))
            & bits(read(one, (${UPPER} + 1)) > read(other, (${LOWER} + 1)))
            & bits(read(one, (${UPPER} + 2)) > read(other, (${LOWER} + 2)));
        return balls & below & above;
    };
// == half_spaces
${BITS}
    // Bit k: whether the box of lane k overlaps the half-space of the plane.
    const auto in_front = [&](auto zero, int lane) {
        typedef decltype(zero) Many;
        constexpr int step = sizeof(Many) / sizeof(float);
        float normals[3][step];
        for (int k = 0; k < step; ++k) {
            const double* q = (const double*)(pose.data + plane + lane + k) + 3;
            normals[0][k] = (float)(2.0 * (q[0] * q[2] + q[1] * q[3]));
            normals[1][k] = (float)(2.0 * (q[1] * q[2] - q[0] * q[3]));
            normals[2][k] = (float)(1.0 - 2.0 * (q[0] * q[0] + q[1] * q[1]));
        }
        const auto read = [](const float* number, int k) { return *(const Many*)(number + k * ${LANES}); };
        const float* point = numbers_of(plane + lane);
        const float* box = numbers_of(instance + lane);
        Many from[3], normal[3];
        Many near = zero, rounding = zero;
        for (int k = 0; k < 3; ++k) {
            normal[k] = *(const Many*)normals[k];
            const Many center = read(point, ${CENTER} + k);
            // The corner of the box farthest into the half-space.
            from[k] = (normal[k] > 0.0f ? read(box, ${LOWER} + k) : read(box, ${UPPER} + k)) - center;
            near = near + MAGNITUDE(center);
            rounding = rounding + MAGNITUDE(from[k]);
        }
        near = inflation + ${SLACK}f * near;
        rounding = rounding * ${SLACK}f;
        return bits(normal[0] * from[0] + normal[1] * from[1] + normal[2] * from[2] - rounding < near);
    };
// == capsules
${LOAD}
    // Whether two capsules may be nearer than `limit`, the radii included, in the lanes from `lane` on.
    const auto near = [&](auto number, int lane) {
        typedef decltype(number) Many;
        constexpr int step = sizeof(Many) / sizeof(double);
        const double *of_a[step], *of_b[step];
        for (int k = 0; k < step; ++k) {
            of_a[k] = (const double*)(pose.data + instance0 + lane + k);
            of_b[k] = (const double*)(pose.data + instance1 + lane + k);
        }
        Many a[7], b[7], from[3], axis_a[3], axis_b[3], normal[3];
        load(a, of_a);
        load(b, of_b);
        const auto set_axis = [](const Many* q, Many* axis) {
            axis[0] = 2.0 * (q[0] * q[2] + q[1] * q[3]);
            axis[1] = 2.0 * (q[1] * q[2] - q[0] * q[3]);
            axis[2] = 1.0 - 2.0 * (q[0] * q[0] + q[1] * q[1]);
        };
        const auto dot = [](const Many* x, const Many* y) { return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]; };
        const auto clamp = [](Many x, double most) {
            const Many zero = x - x;
            return GREATER(zero - most, LESSER(zero + most, x));
        };
        set_axis(a + 3, axis_a);
        set_axis(b + 3, axis_b);
        for (int k = 0; k < 3; ++k)
            from[k] = b[k] - a[k];
        const Many zero = from[0] - from[0];
        const Many cosine = dot(axis_a, axis_b), along_a = dot(axis_a, from), along_b = dot(axis_b, from);
        // Closest points of the segments, nearly: any direction gives a valid bound.
        Many on_a = clamp((along_a - cosine * along_b) / GREATER(1.0 - cosine * cosine, zero + 1.0e-9), half_a);
        const Many on_b = clamp(on_a * cosine - along_b, half_b);
        on_a = clamp(along_a + on_b * cosine, half_a);
        for (int k = 0; k < 3; ++k)
            normal[k] = from[k] + on_b * axis_b[k] - on_a * axis_a[k];
        const Many height = dot(normal, from) - half_a * MAGNITUDE(dot(normal, axis_a))
            - half_b * MAGNITUDE(dot(normal, axis_b));
        const Many scale = MAGNITUDE(from[0]) + MAGNITUDE(from[1]) + MAGNITUDE(from[2]) + (half_a + half_b + limit);
        const Many least = limit + ${CAPSULE_SLACK} * scale;
        return bits((height <= 0.0) | (height * height <= least * least * dot(normal, normal)));
    };
// == over_lanes
${VECTORS}${test}
    unsigned int found = 0;
    int lane = 0;
#if defined(VECTOR_LANES)
    for (; lane + ${LANES} <= count; lane += ${LANES})
        found |= ${many} << lane;
#endif
    for (; lane < count; ++lane)
        found |= ${one} << lane;
${EPILOGUE}
    return found;
// == lanes_near
${PRELUDE}${DOUBLE_BITS}${CAPSULES}
    unsigned int found = 0;
    int lane = 0;
#if defined(VECTOR_LANES)
    for (; lane + ${LANE_STEP} <= count; lane += ${LANE_STEP})
        found |= near(Doubles{}, lane) << lane;
#endif
    for (; lane < count; ++lane)
        found |= near(0.0, lane) << lane;
${EPILOGUE}
    return found;
