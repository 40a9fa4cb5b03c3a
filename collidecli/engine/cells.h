// C++ of cells.py, by section. The compiler of a kernel reads it: ${NAME} is a value of the module.
// == store
    const auto store = [&](double* to, const auto* pose) {
        if constexpr (sizeof(pose[0]) == sizeof(double)) {
            for (int k = 0; k < 7; ++k)
                to[k] = pose[k];
        }
#if defined(VECTOR_LANES)
        else {
            Doubles low[4] = {pose[0], pose[1], pose[2], pose[3]}, high[4] = {pose[3], pose[4], pose[5], pose[6]};
            transposed(low);
            transposed(high);
            for (int lane = 0; lane < ${LANE_STEP}; ++lane) {
                *(Doubles*)(to + 7 * lane) = low[lane];
                *(Doubles*)(to + 7 * lane + 3) = high[lane];
            }
        }
#endif
    };
// == extents
    // Half extents of the box around a shape at a pose; of a cone the box is not symmetric: low and high differ.
    const auto extents = [&](const auto* pose, auto* low, auto* high) {
        const auto x = pose[3], y = pose[4], z = pose[5], w = pose[6];
        const auto zero = x - x;
        if (type == ${SPHERE}) {
            for (int k = 0; k < 3; ++k)
                high[k] = zero + size[0];
        } else {
            decltype(x + x) axis[3] = {2.0 * (x * z + y * w), 2.0 * (y * z - x * w), 1.0 - 2.0 * (x * x + y * y)};
            decltype(x + x) disc[3];
            if (type == ${CYLINDER} || type == ${CONE})
                for (int k = 0; k < 3; ++k)
                    disc[k] = size[0] * ROOT(GREATER(zero, 1.0 - axis[k] * axis[k]));
            if (type == ${CONE}) {
                for (int k = 0; k < 3; ++k) {
                    low[k] = LESSER(size[1] * axis[k], -size[1] * axis[k] - disc[k]);
                    high[k] = GREATER(size[1] * axis[k], -size[1] * axis[k] + disc[k]);
                }
            } else if (type == ${CAPSULE}) {
                for (int k = 0; k < 3; ++k)
                    high[k] = size[1] * MAGNITUDE(axis[k]) + size[0];
            } else if (type == ${CYLINDER}) {
                for (int k = 0; k < 3; ++k)
                    high[k] = size[1] * MAGNITUDE(axis[k]) + disc[k];
            } else {
                const decltype(x + x) of_x[3] = {
                    1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + z * w), 2.0 * (x * z - y * w)};
                const decltype(x + x) of_y[3] = {
                    2.0 * (x * y - z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + x * w)};
                for (int k = 0; k < 3; ++k) {
                    const auto a = size[0] * of_x[k], b = size[1] * of_y[k], c = size[2] * axis[k];
                    if (type == ${ELLIPSOID})
                        high[k] = ROOT(a * a + b * b + c * c);
                    else
                        high[k] = MAGNITUDE(a) + MAGNITUDE(b) + MAGNITUDE(c);
                }
            }
        }
    };
// == place_lanes
${PRELUDE}${LOAD}${STORE}${COMPOSITION}
    const int type = rows.type.data[row], body = rows.body.data[row];
    const auto size = rows.size.data[row];
${EXTENTS}
    const double* local = (const double*)(rows.pose.data + row);
    const double grown = rows.inflation.data[row];
    const float outward = ${OUTWARD}f, infinite = ${INFINITE}f;
    const auto place = [&](auto number, auto single, int offset) {
        typedef decltype(number) Many;
        typedef decltype(single) ManySingle;
        constexpr int step = sizeof(Many) / sizeof(double);
        const auto narrow = [](Many x) {
            if constexpr (sizeof(Many) == sizeof(double))
                return (float)x;
#if defined(VECTOR_LANES)
            else
                return __builtin_convertvector(x, Floats);
#endif
        };
        const double* address[step];
        const double* world[step];
        for (int lane = 0; lane < step; ++lane) {
            const int cell = chunk.lane_cell.data[first_lane + offset + lane];
            world[lane] = (const double*)(chunk.world_shift.data + chunk.cell_world.data[cell]);
            address[lane] = body >= 0 ? (const double*)(chunk.body_pose.data + chunk.first_pose.data[cell] + body) : world[lane];
        }
        Many shape[7], frame[7], pose[7];
        for (int k = 0; k < 7; ++k)
            shape[k] = number * 0.0 + local[k];
        if (body >= 0 && chunk.shared != 0 && chunk.body_shifts.data[body] != 0) {
            Many own[7], shift[7];
            load(own, address);
            load(shift, world);
            compose(shift, own, frame);
            compose(frame, shape, pose);
        } else if (body >= 0 || body == ${MOVED_BY_WORLD}) {
            load(frame, address);
            compose(frame, shape, pose);
        } else {
            for (int k = 0; k < 7; ++k)
                pose[k] = shape[k];
        }
        store((double*)(instances.pose.data + first + offset), pose);
        const int instance = first + offset;
        float* bounds = instances.bound.data + (instance / ${LANES}) * (${BOUND_NUMBERS} * ${LANES}) + instance % ${LANES};
        const auto put = [&](int k, ManySingle value) { *(ManySingle*)(bounds + k * ${LANES}) = value; };
        const ManySingle center[3] = {narrow(pose[0]), narrow(pose[1]), narrow(pose[2])};
        const float ball = rows.radius.data[row] + rows.inflation.data[row];
        // Of a ball around the rounded centre that contains the ball around the exact one.
        const auto distance = ball + MAGNITUDE(center[0]) + MAGNITUDE(center[1]) + MAGNITUDE(center[2]);
        put(${RADIUS}, ball + outward * distance);
        // Of the corners, in float64: shapes that only touch overlap, also where a corner is at 0.
        const auto error = type == ${PLANE} ? 0.0f * center[0] : ${ROUNDING}f * distance;
        Many low[3], high[3];
        if (type != ${PLANE})
            extents(pose, low, high);
        for (int k = 0; k < 3; ++k) {
            Many lower, upper;
            if (type == ${PLANE}) {
                upper = number * 0.0 + (double)infinite;
                lower = -upper;
            } else if (type == ${CONE}) {
                lower = pose[k] + low[k] - grown;
                upper = pose[k] + high[k] + grown;
            } else {
                lower = pose[k] - (high[k] + grown);
                upper = pose[k] + (high[k] + grown);
            }
            const ManySingle down = narrow(lower), up = narrow(upper);
            put(${CENTER} + k, center[k]);
            put(${LOWER} + k, down - outward * MAGNITUDE(down) - error);
            put(${UPPER} + k, up + outward * MAGNITUDE(up) + error);
        }
    };
    int offset = 0;
#if defined(VECTOR_LANES)
    for (; offset + ${LANE_STEP} <= count; offset += ${LANE_STEP})
        place(Doubles{}, Floats{}, offset);
#endif
    for (; offset < count; ++offset)
        place(0.0, 0.0f, offset);
${EPILOGUE}
// == read_ahead
#if defined(__clang__) && !defined(__CUDA_ARCH__)
    if (first_lane + lanes > chunk.lane_cell.shape[0])
        return;
    const char* begin = (const char*)(chunk.body_pose.data + chunk.first_pose.data[chunk.lane_cell.data[first_lane]]);
    const char* end = (const char*)(chunk.body_pose.data + chunk.first_pose.data[chunk.lane_cell.data[first_lane + lanes - 1]]);
    const long size = end - begin;
    for (long at = size * part / parts & ~63; at < size * (part + 1) / parts; at += 64)
        __builtin_prefetch(begin + at);
#endif
// == place_empty
    for (int instance = first; instance < first + count; ++instance) {
        float* number = bound.data + (instance / ${LANES}) * (${BOUND_NUMBERS} * ${LANES}) + instance % ${LANES};
        for (int k = 0; k < ${BOUND_NUMBERS}; ++k)
            number[k * ${LANES}] = 2.0f * ${INFINITE}f;
        number[(${RADIUS} * ${LANES})] = 0.0f;
        for (int k = 0; k < 3; ++k)
            number[(${UPPER} + k) * ${LANES}] = -2.0f * ${INFINITE}f;
    }
// == bound_block
${PRELUDE}
    float* box = block_box.data + (slot / ${LANES}) * (${BOX_NUMBERS} * ${LANES}) + slot % ${LANES};
    const float* first = bound.data + (slot * lanes / ${LANES}) * (${BOUND_NUMBERS} * ${LANES}) + slot * lanes % ${LANES};
    for (int k = 0; k < 3; ++k) {
        const float* lower = first + (${LOWER} + k) * ${LANES};
        const float* upper = first + (${UPPER} + k) * ${LANES};
        float low = lower[0], high = upper[0];
#if defined(VECTOR_LANES)
        if (lanes >= ${LANES}) {
            typedef float Group __attribute__((ext_vector_type(${LANES}), aligned(4)));
            Group lows = *(const Group*)lower, highs = *(const Group*)upper;
            for (int g = (${BOUND_NUMBERS} * ${LANES}); g < lanes * ${BOUND_NUMBERS}; g += (${BOUND_NUMBERS} * ${LANES})) {
                lows = LESSER(lows, *(const Group*)(lower + g));
                highs = GREATER(highs, *(const Group*)(upper + g));
            }
            low = __builtin_reduce_min(lows);
            high = __builtin_reduce_max(highs);
        }
#else
        for (int lane = 1; lane < lanes; ++lane) {
            const int at = (lane / ${LANES}) * (${BOUND_NUMBERS} * ${LANES}) + lane % ${LANES};
            low = lower[at] < low ? lower[at] : low;
            high = upper[at] > high ? upper[at] : high;
        }
#endif
        box[k * ${LANES}] = low;
        box[(k + 3) * ${LANES}] = high;
    }
${EPILOGUE}
