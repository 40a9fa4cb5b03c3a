// C++ of ordered_contacts.py, by section. The compiler of a kernel reads it: ${NAME} is a value of the module.
// == list_sources
    for (int candidate = begin; candidate < last; ++candidate) {
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
        #pragma unroll
        for (int lane = 0; lane < step; ++lane) {
            const int at = slot + lane;
            const wp::vec_t<2, int> row = candidates.row.data[sources.candidate.data[at]];
            const auto& found = emitted.contact.data[sources.record.data[at]];
            const bool swap = swapped[lane];
            columns.shape0.data[at] = row[0];
            columns.shape1.data[at] = row[1];
            columns.distance.data[at] = (float)(of_lane(contact[6], lane) - sources.margin.data[at]) + 0.0f;
            columns.feature0.data[at] = swap ? found.feature_b : found.feature_a;
            columns.feature1.data[at] = swap ? found.feature_a : found.feature_b;
            columns.kind.data[at] = (wp::uint8)found.kind;
            auto* point_a = (swap ? columns.point1.data : columns.point0.data) + at;
            auto* point_b = (swap ? columns.point0.data : columns.point1.data) + at;
            auto* offset_a = (swap ? columns.offset1.data : columns.offset0.data) + at;
            auto* offset_b = (swap ? columns.offset0.data : columns.offset1.data) + at;
            const double sign = swap ? -1.0 : 1.0;
            for (int k = 0; k < 3; ++k) {
                columns.normal.data[at].c[k] = (float)(sign * of_lane(normal[k], lane)) + 0.0f;
                point_a->c[k] = (POINT_NUMBER)of_lane(point[0][k], lane) + (POINT_NUMBER)0.0;
                point_b->c[k] = (POINT_NUMBER)of_lane(point[1][k], lane) + (POINT_NUMBER)0.0;
                offset_a->c[k] = (float)of_lane(offset[0][k], lane) + 0.0f;
                offset_b->c[k] = (float)of_lane(offset[1][k], lane) + 0.0f;
            }
        }
    };
