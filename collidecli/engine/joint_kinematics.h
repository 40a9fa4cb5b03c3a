// C++ of joint_kinematics.py, by section. The compiler of a kernel reads it: ${NAME} is a value of the module.
// == vectors
    typedef double Many __attribute__((ext_vector_type(${LANES}), aligned(8)));
    typedef long long Whole __attribute__((ext_vector_type(${LANES})));
    typedef int Short __attribute__((ext_vector_type(${LANES})));
    const auto all = [](const auto holds) { return __builtin_reduce_and(holds) != 0; };
    const auto any = [](const auto holds) { return __builtin_reduce_or(holds) != 0; };
    const auto absolute = [](const Many x) { return __builtin_elementwise_abs(x); };
    const auto root = [](const Many x) { return __builtin_elementwise_sqrt(x); };
    const auto rounded = [](const Many x) { return __builtin_elementwise_rint(x); };
    const auto whole = [](const Many x) { return __builtin_convertvector(__builtin_convertvector(x, Short), Whole); };
// == numbers
    typedef double Many;
    typedef int Whole;
    const auto all = [](const bool holds) { return holds; };
    const auto any = all;
#if defined(__CUDA_ARCH__)
    const auto absolute = [](const Many x) { return fabs(x); };
    const auto root = [](const Many x) { return sqrt(x); };
    const auto rounded = [](const Many x) { return rint(x); };
#else
    const auto absolute = [](const Many x) { return __builtin_elementwise_abs(x); };
    const auto root = [](const Many x) { return __builtin_elementwise_sqrt(x); };
    const auto rounded = [](const Many x) { return __builtin_elementwise_rint(x); };
#endif
    const auto whole = [](const Many x) { return (Whole)x; };
// == sincos
    // Sine and cosine of numerics, whose order of operations this is; false beyond MODERATE.
    const auto sincos = [&](const Many angle, Many& sine, Many& cosine) {
        if (!all(absolute(angle) <= ${MODERATE}))
            return false;
        const Many number = rounded(angle * ${TWO_OVER_PI});
        const Many first = angle - number * ${HALF_PI_PARTS[0]}, second = -(number * ${HALF_PI_PARTS[1]});
        Many high = first + second;
        Many part = high - first;
        Many low = (first - (high - part)) + (second - part);
        const Many third = -(number * ${HALF_PI_PARTS[2]});
        const Many total = high + third;
        part = total - high;
        low = low + (((high - (total - part)) + (third - part)) - number * ${HALF_PI_PARTS[3]});
        const Many r = total + low;
        const Many r_low = low - (r - total);
        const Many z = r * r, cube = z * r;
        Many tail = ${SINE[1]} + z * (${SINE[2]} + z * (${SINE[3]} + z * (${SINE[4]} + z * ${SINE[5]})));
        const Many plain_sine = r - ((z * (0.5 * r_low - cube * tail) - r_low) - cube * ${SINE[0]});
        const Many square = z * z;
        tail = z * (${COSINE[0]} + z * (${COSINE[1]} + z * ${COSINE[2]}))
            + square * square * (${COSINE[3]} + z * (${COSINE[4]} + z * ${COSINE[5]}));
        const Many half = 0.5 * z;
        const Many lead = 1.0 - half;
        const Many plain_cosine = lead + (((1.0 - lead) - half) + (z * tail - r * r_low));
        const Whole quadrant = whole(number);
        const auto swapped = (quadrant & 1) == 1;
        sine = swapped ? plain_cosine : plain_sine;
        cosine = swapped ? plain_sine : plain_cosine;
        sine = (quadrant & 2) == 2 ? -sine : sine;
        sine = angle == 0.0 ? angle : sine;
        cosine = ((quadrant + 1) & 2) == 2 ? -cosine : cosine;
        return true;
    };
// == quaternions
    const auto normalize = [&](Many* q) {
        const Many length = root(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
        const auto off = absolute(length - 1.0) > ${UNIT};
        if (!any(off))
            return;
        const Many inverse = 1.0 / length;
        const auto is_short = length < ${SHORTEST};
        for (int k = 0; k < 4; ++k) {
            const Many divided = off ? q[k] * inverse : q[k];
            q[k] = is_short ? Many(k == 0 ? 1.0 : 0.0) : divided;
        }
    };
    const auto multiply = [](const Many* p, Many* q) {  // q becomes p q
        const Many w = p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3];
        const Many x = p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2];
        const Many y = p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1];
        q[3] = p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0];
        q[0] = w;
        q[1] = x;
        q[2] = y;
    };
    const auto rotate = [](const double* vector, const Many* q, Many* out) {
        const double u = vector[0], v = vector[1], t = vector[2];
        const Many w = q[0], x = q[1], y = q[2], z = q[3];
        const Many a = w * u + y * t - z * v;
        const Many b = w * v + z * u - x * t;
        const Many c = w * t + x * v - y * u;
        out[0] = u + 2.0 * (y * c - z * b);
        out[1] = v + 2.0 * (z * a - x * c);
        out[2] = t + 2.0 * (x * b - y * a);
    };
    const auto write_matrix = [](const Many* q, Many* r) {
        const Many w = q[0], x = q[1], y = q[2], z = q[3];
        const Many ww = w * w, wx = w * x, wy = w * y, wz = w * z;
        const Many xx = x * x, xy = x * y, xz = x * z, yy = y * y, yz = y * z, zz = z * z;
        r[0] = ww + xx - yy - zz;
        r[1] = 2.0 * (xy - wz);
        r[2] = 2.0 * (xz + wy);
        r[3] = 2.0 * (xy + wz);
        r[4] = ww - xx + yy - zz;
        r[5] = 2.0 * (yz - wx);
        r[6] = 2.0 * (xz - wy);
        r[7] = 2.0 * (yz + wx);
        r[8] = ww - xx - yy + zz;
    };
// == move
    const auto move = [&](int joint, const auto& coordinate_at, Many* pose) {
        const double* number = joints.numbers.data + ${_NUMBERS} * joint;
        const int kind = joints.kind.data[joint], address = joints.address.data[joint];
        const auto coordinate = [&](int k) { return coordinate_at(address + k); };
        Many* q = pose + 3;
        Many turned[3];
        if (kind == ${SLIDE}) {
            rotate(number, q, turned);
            const Many length = coordinate(0) - number[6];
            for (int k = 0; k < 3; ++k)
                pose[k] = pose[k] + turned[k] * length;
            return true;
        }
        Many anchor[3], rotation[4];
        rotate(number + 3, q, anchor);
        for (int k = 0; k < 3; ++k)
            anchor[k] = anchor[k] + pose[k];
        if (kind == ${BALL}) {
            for (int k = 0; k < 4; ++k)
                rotation[k] = coordinate(k);
            normalize(rotation);
        } else {
            Many sine;
            if (!sincos((coordinate(0) - number[6]) * 0.5, sine, rotation[0]))
                return false;
            for (int k = 0; k < 3; ++k)
                rotation[k + 1] = number[k] * sine;
        }
        const Many before[4] = {q[0], q[1], q[2], q[3]};
        for (int k = 0; k < 4; ++k)
            q[k] = rotation[k];
        multiply(before, q);
        rotate(number + 3, q, turned);
        for (int k = 0; k < 3; ++k)
            pose[k] = anchor[k] - turned[k];
        return true;
    };
// == bodies
    const int width = bodies.kind.shape[0];
    const auto state_of = [&](int body) { return (Many*)state.data + ${_STATE} * body; };
    for (int body = 0; body < width; ++body)
        if (bodies.kind.data[body] == ${FIXED}) {
            for (int k = 0; k < 7; ++k)
                state_of(body)[k] = Many(bodies.pose.data[7 * body + k]);
            write_matrix(state_of(body) + 3, state_of(body) + 7);
        }
    for (int first = 0; first < count; first += ${LANES}) {
        // The lanes behind the last configuration repeat it.
        const double* row[${LANES}];
        double* to[${LANES}];
        for (int lane = 0; lane < ${LANES}; ++lane) {
            const long long at = first + lane < count ? first + lane : count - 1;
            row[lane] = coordinates.data + at * coordinate_count;
            to[lane] = poses.data + at * 7 * (width - 1);
        }
        const auto coordinate_at = [&](int k) {
            Many out;
            for (int lane = 0; lane < ${LANES}; ++lane)
                out[lane] = row[lane][k];
            return out;
        };
        for (int body = 1; body < width; ++body) {
            Many* pose = state_of(body);
            Many* q = pose + 3;
            const int kind = bodies.kind.data[body], joint = bodies.first.data[body];
            if (kind == ${FREE}) {
                for (int k = 0; k < 7; ++k)
                    pose[k] = coordinate_at(joint + k);
                normalize(q);
            } else if (kind == ${JOINTED}) {
                for (int k = 0; k < 7; ++k)
                    pose[k] = Many(bodies.pose.data[7 * body + k]);
                const int parent = bodies.parent.data[body];
                if (parent) {
                    const Many* of_parent = state_of(parent);
                    const Many* r = of_parent + 7;
                    const Many x = pose[0], y = pose[1], z = pose[2];
                    for (int k = 0; k < 3; ++k)
                        pose[k] = (r[3 * k] * x + r[3 * k + 1] * y + r[3 * k + 2] * z) + of_parent[k];
                    multiply(of_parent + 3, q);
                }
                for (int k = 0; k < bodies.count.data[body]; ++k)
                    if (!move(joint + k, coordinate_at, pose))
                        return false;
            }
            if (kind != ${FIXED}) {
                normalize(q);
                if (bodies.is_parent.data[body])
                    write_matrix(q, pose + 7);
            }
            const Many xyzw[7] = {pose[0], pose[1], pose[2], q[1], q[2], q[3], q[0]};
            for (int lane = 0; lane < ${LANES}; ++lane)
                for (int k = 0; k < 7; ++k)
                    to[lane][7 * (body - 1) + k] = xyzw[k][lane];
        }
    }
    return true;
// == configuration
    const int width = bodies.kind.shape[0];
    const double* row = coordinates.data + (long long)number * coordinate_count;
    double* out = (double*)(poses.data + (long long)number * (width - 1));
    const auto coordinate_at = [&](int k) { return row[k]; };
    for (int body = 1; body < width; ++body) {
        double pose[7];
        double* q = pose + 3;
        const int kind = bodies.kind.data[body], joint = bodies.first.data[body];
        for (int k = 0; k < 7; ++k)
            pose[k] = kind == ${FREE} ? row[joint + k] : bodies.pose.data[7 * body + k];
        if (kind == ${FREE})
            normalize(q);
        const int parent = bodies.parent.data[body];
        if (kind == ${JOINTED} && parent) {
            const double* from = out + 7 * (parent - 1);
            const double of_parent[4] = {from[6], from[3], from[4], from[5]};
            double r[9];
            write_matrix(of_parent, r);
            const double x = pose[0], y = pose[1], z = pose[2];
            for (int k = 0; k < 3; ++k)
                pose[k] = (r[3 * k] * x + r[3 * k + 1] * y + r[3 * k + 2] * z) + from[k];
            multiply(of_parent, q);
        }
        if (kind == ${JOINTED})
            for (int k = 0; k < bodies.count.data[body]; ++k)
                if (!move(joint + k, coordinate_at, pose))
                    return false;
        if (kind != ${FIXED})
            normalize(q);
        const double xyzw[7] = {pose[0], pose[1], pose[2], q[1], q[2], q[3], q[0]};
        for (int k = 0; k < 7; ++k)
            out[7 * (body - 1) + k] = xyzw[k];
    }
// == frames
    // Products of numerics.pose_columns, xyzw, whose order of operations this is.
    const auto turn = [](const double* q, const double* v, double* turned) {
        const double tx = 2.0 * (q[1] * v[2] - q[2] * v[1]);
        const double ty = 2.0 * (q[2] * v[0] - q[0] * v[2]);
        const double tz = 2.0 * (q[0] * v[1] - q[1] * v[0]);
        const double x = v[0] + q[3] * tx + q[1] * tz - q[2] * ty;
        const double y = v[1] + q[3] * ty + q[2] * tx - q[0] * tz;
        turned[2] = v[2] + q[3] * tz + q[0] * ty - q[1] * tx;
        turned[0] = x;
        turned[1] = y;
    };
    const auto turn_by = [](double* p, const double* q) {  // p becomes p q
        const double x = p[3] * q[0] + p[0] * q[3] + p[1] * q[2] - p[2] * q[1];
        const double y = p[3] * q[1] - p[0] * q[2] + p[1] * q[3] + p[2] * q[0];
        const double z = p[3] * q[2] + p[0] * q[1] - p[1] * q[0] + p[2] * q[3];
        p[3] = p[3] * q[3] - p[0] * q[0] - p[1] * q[1] - p[2] * q[2];
        p[0] = x;
        p[1] = y;
        p[2] = z;
    };
    const auto compose = [&](double* a, const double* b) {  // a becomes a b
        double moved[3];
        turn(a + 3, b, moved);
        for (int k = 0; k < 3; ++k)
            a[k] = a[k] + moved[k];
        turn_by(a + 3, b + 3);
    };
    const auto invert = [&](double* a) {
        for (int k = 3; k < 6; ++k)
            a[k] = -a[k];
        turn(a + 3, a, a);
        for (int k = 0; k < 3; ++k)
            a[k] = -a[k];
    };
    const auto set_identity = [](double* a) {
        for (int k = 0; k < 7; ++k)
            a[k] = k == 6 ? 1.0 : 0.0;
    };
    const auto copy = [](double* to, const double* from, int count) {
        for (int k = 0; k < count; ++k)
            to[k] = from[k];
    };
// == steps
    double at[7], motion[7];
    for (int first = 0; first < steps.numbers.shape[0]; first += ${STEP_NUMBERS}) {
        const int* step = steps.numbers.data + first;
        const int kind = step[0], index = step[1];
        if (kind == ${FROM_FRAME})
            copy(at, steps.frames.data + 7 * index, 7);
        else if (kind == ${FROM_BODY} && index < 0)
            set_identity(at);
        else if (kind == ${FROM_BODY})
            copy(at, out + 7 * index, 7);
        else if (kind == ${FROM_COORDINATES})
            copy(at, row + index, 7);
        else if (kind == ${BY_FRAME})
            compose(at, steps.frames.data + 7 * index);
        else if (kind == ${BY_BODY})
            compose(at, out + 7 * index);
        else if (kind == ${AT_REST})
            set_identity(motion);
        else if (kind == ${SHIFT})
            motion[index] = row[step[2]];
        else if (kind == ${TURN}) {
            double rotation[4] = {0.0, 0.0, 0.0, 0.0};
            if (!sincos(0.5 * row[step[2]], rotation[index], rotation[3]))
                return false;
            turn_by(motion + 3, rotation);
        } else if (kind == ${ROTATION}) {
            double q[4];
            for (int k = 0; k < 4; ++k)
                q[k] = row[step[1 + k]];
            const double norm = root(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
            for (int k = 0; k < 4; ++k)
                motion[3 + k] = q[k] / norm;
        } else if (kind == ${BY_MOTION})
            compose(at, motion);
        else if (kind == ${BY_INVERSE}) {
            invert(motion);
            compose(at, motion);
        } else if (kind == ${STORE})
            copy(out + 7 * index, at, 7);
    }
// == checked
    // As storage.array_loops.normalize, which reads of a recording end with.
    bool is_valid = true;
    for (int body = 1; body < width; ++body) {
        double* pose = out + 7 * (body - 1);
        double* q = pose + 3;
        const double norm = root(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
        is_valid = is_valid && absolute(norm - 1.0) <= ${TOLERANCE};
        for (int k = 0; k < 3; ++k)
            is_valid = is_valid && absolute(pose[k]) <= ${LIMIT};
        for (int k = 0; k < 4; ++k)
            q[k] = q[k] / norm;
    }
    return is_valid;
