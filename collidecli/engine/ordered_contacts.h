// C++ of ordered_contacts.py, by section. The compiler of a kernel reads it: ${NAME} is a value of the module.
// == list_sources
    for (int candidate = begin; candidate < last; ++candidate) {
#if !defined(__CUDA_ARCH__)
        // The records of a cell's contacts are far apart: the features that are compared later are requested now.
        const int later = candidate + ${AHEAD};
        if (later < last && candidates.count.data[later] > 1) {
            const int first = candidates.first.data[later], stride = candidates.stride.data[later];
            for (int i = 0; i < candidates.count.data[later]; ++i)
                __builtin_prefetch(&emitted.contact.data[first + i * stride].feature_a);
        }
#endif
        const int count = candidates.count.data[candidate];
        if (count == 0)
            continue;
        const int slot = candidates.end.data[candidate] - count;
        const int first = candidates.first.data[candidate], stride = candidates.stride.data[candidate];
        const wp::vec_t<2, int> row = candidates.row.data[candidate];
        double margin = margins.margin.data[row[0]] + margins.margin.data[row[1]];
        int low = margins.forced_start.data[row[0]];
        const int end = margins.forced_start.data[row[0] + 1];
        for (int high = end; low < high;) {
            const int middle = (low + high) / 2;
            if (margins.forced.data[middle] < row[1])
                low = middle + 1;
            else
                high = middle;
        }
        if (low < end && margins.forced.data[low] == row[1] && !isnan(margins.forced_margin.data[low]))
            margin = margins.forced_margin.data[low];
        for (int i = 0; i < count; ++i) {
            sources.record.data[slot + i] = first + i * stride;
            sources.candidate.data[slot + i] = candidate;
            sources.margin.data[slot + i] = margin;
        }
        if (count == 1)
            continue;
        // Insertion sort by the features of shape0, then of shape1.
        const bool swapped = rows.type.data[row[0]] > rows.type.data[row[1]];
        int* record = sources.record.data + slot;
        const auto features = [&](int index) {
            const auto& contact = emitted.contact.data[index];
            const wp::int64 a = contact.feature_a, b = contact.feature_b, scale = (wp::int64)1 << 32;
            return swapped ? b * scale + a : a * scale + b;
        };
        for (int i = 1; i < count; ++i) {
            const int moved = record[i];
            const wp::int64 own = features(moved);
            int k = i;
            for (; k > 0 && own < features(record[k - 1]); --k)
                record[k] = record[k - 1];
            record[k] = moved;
        }
    }
// == addresses
    // A column without an array is not written. Vectors of lanes write all columns, and test none.
    const auto write_row = [&](auto zero, int at, bool swap, double separation) {
        const auto is_written = [](const auto& column) {
            return sizeof(decltype(zero)) > sizeof(double) || column.data;
        };
        const wp::vec_t<2, int> row = candidates.row.data[sources.candidate.data[at]];
        const auto& found = emitted.contact.data[sources.record.data[at]];
        if (is_written(columns.shape0))
            columns.shape0.data[at] = row[0];
        if (is_written(columns.shape1))
            columns.shape1.data[at] = row[1];
        if (is_written(columns.distance))
            columns.distance.data[at] = (float)(separation - sources.margin.data[at]) + 0.0f;
        if (is_written(columns.feature0))
            columns.feature0.data[at] = swap ? found.feature_b : found.feature_a;
        if (is_written(columns.feature1))
            columns.feature1.data[at] = swap ? found.feature_a : found.feature_b;
        if (is_written(columns.kind))
            columns.kind.data[at] = (wp::uint8)found.kind;
    };
    const auto write = [&](auto zero, int slot) {
        typedef decltype(zero) Many;
        constexpr int step = sizeof(Many) / sizeof(double);
        const double identity[7] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0};
        double moved[2 * step][7];
        const double *record[step], *pose[step], *body[2][step];
        bool swapped[step];
#if defined(VECTOR_LANES)
        // The records of a cell's contacts are far apart: those of a later vector are requested now.
        for (int at = slot + ${AHEAD}; at < slot + ${AHEAD} + step && at < last; ++at) {
            const char* line = (const char*)(emitted.contact.data + sources.record.data[at]);
            __builtin_prefetch(line);
            __builtin_prefetch(line + 64);
        }
#endif
        for (int lane = 0; lane < step; ++lane) {
            const int candidate = sources.candidate.data[slot + lane];
            const wp::vec_t<2, int> row = candidates.row.data[candidate], pair = candidates.pair.data[candidate];
            swapped[lane] = rows.type.data[row[0]] > rows.type.data[row[1]];
            record[lane] = (const double*)(emitted.contact.data + sources.record.data[slot + lane]);
            pose[lane] = (const double*)(instances.pose.data + pair[swapped[lane]]);
            const int block = (pair[0] >> chunk.shift) / width;
            const int cell = chunk.lane_cell.data[(block << chunk.shift) + (pair[0] & ((1 << chunk.shift) - 1))];
            for (int side = 0; side < 2; ++side) {
                const int number = rows.body.data[row[side ^ swapped[lane]]];
                const double* own = identity;
                if (number >= 0) {
                    own = (const double*)(chunk.body_pose.data + chunk.first_pose.data[cell] + number);
                    if (chunk.shared != 0 && chunk.body_shifts.data[number] != 0) {
                        compose((const double*)(chunk.world_shift.data + chunk.cell_world.data[cell]), own,
                            moved[2 * lane + side]);
                        own = moved[2 * lane + side];
                    }
                }
                body[side][lane] = own;
            }
        }
// == sides
        // Sides a and b of the record; the columns of shape0 are those of b where the pair is swapped.
        Many contact[7], frame[7], normal[3], point[2][3], offset[2][3];
        load(contact, record);
        load(frame, pose);
        rotate(frame + 3, contact + 3, 1.0, normal);
        rotate(frame + 3, contact, 1.0, point[0]);
        for (int k = 0; k < 3; ++k) {
            point[0][k] = frame[k] + point[0][k];
            point[1][k] = point[0][k] + contact[6] * normal[k];
        }
        for (int side = 0; side < 2; ++side) {
            Many own[7], from[3];
            load(own, body[side]);
            for (int k = 0; k < 3; ++k)
                from[k] = point[side][k] - own[k];
            rotate(own + 3, from, -1.0, offset[side]);
        }
// == stores
        const auto of_lane = [](const Many& many, int lane) -> double {
            if constexpr (step == 1)
                return many;
            else
                return many[lane];
        };
        // The addition of 0 turns -0 into 0.
        const auto store = [&](auto* vectors, int lane, const Many* values, double sign) {
            if (step == 1 && !vectors)
                return;
            typedef decltype(vectors->c[0] + 0) Number;
            for (int k = 0; k < 3; ++k)
                vectors[slot + lane].c[k] = (Number)(sign * of_lane(values[k], lane)) + (Number)0;
        };
        #pragma unroll
        for (int lane = 0; lane < step; ++lane) {
            const bool swap = swapped[lane];
            write_row(zero, slot + lane, swap, of_lane(contact[6], lane));
            store(columns.normal.data, lane, normal, swap ? -1.0 : 1.0);
            store(swap ? columns.point1.data : columns.point0.data, lane, point[0], 1.0);
            store(swap ? columns.point0.data : columns.point1.data, lane, point[1], 1.0);
            store(swap ? columns.offset1.data : columns.offset0.data, lane, offset[0], 1.0);
            store(swap ? columns.offset0.data : columns.offset1.data, lane, offset[1], 1.0);
        }
    };
// == loops
    // Where no vector is wanted, a thread reads its record alone, and no pose.
    const bool is_placed = columns.normal.data || columns.point0.data || columns.point1.data || columns.offset0.data ||
        columns.offset1.data;
    int slot = first;
    for (; !is_placed && slot < last; ++slot) {
        const wp::vec_t<2, int> row = candidates.row.data[sources.candidate.data[slot]];
        const bool swap = rows.type.data[row[0]] > rows.type.data[row[1]];
        write_row(0.0, slot, swap, emitted.contact.data[sources.record.data[slot]].separation);
    }
#if defined(VECTOR_LANES)
    const bool has_all = ${HAS_ALL};
    for (; has_all && slot + ${LANE_STEP} <= last; slot += ${LANE_STEP})
        write(Doubles{}, slot);
#endif
    for (; slot < last; ++slot)
        write(0.0, slot);
