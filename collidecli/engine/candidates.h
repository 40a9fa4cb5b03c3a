// C++ of candidates.py, by section. The compiler of a kernel reads it: ${NAME} is a value of the module.
// == count_of_part
${BIT_FUNCTIONS}${PAIRS_OF_PART}
    int of_lane[32] = {};
    for (int b = 0; b < 2 * bucket_count; ++b)
        bucket_end.data[b * part_count + part] = 0;
    for (int p = begin; p < end_of_part; ++p) {
        wp::uint32 mask = pairs.mask.data[p];
        if (mask == 0)
            continue;
        const int row0 = slot_row.data[first_row_slot + pairs.slots.data[p][0] - block * width];
        const int row1 = slot_row.data[first_row_slot + pairs.slots.data[p][1] - block * width];
        const int bucket = of_kinds.data[kind.data[row0] * kind_count + kind.data[row1]];
        pairs.row.data[p] = wp::vec_t<2, int>(row0, row1);
        pairs.bucket.data[p] = (wp::uint8)bucket;
        int* end = bucket_end.data + bucket * part_count + part;
        int* pair_end = end + bucket_count * part_count;
        pairs.before.data[p] = wp::vec_t<2, int>(*end, *pair_end);
        *end += COUNT_OF(mask);
        ++*pair_end;
        for (; mask != 0; mask &= mask - 1)
            ++of_lane[FIRST_OF(mask)];
    }
    for (int lane = 0; lane < size; ++lane)
        cell_end.data[lane_cell.data[first_lane + lane] * parts + (int)number] = of_lane[lane];
// == write_part
${BIT_FUNCTIONS}${PAIRS_OF_PART}
    int next[32];
    for (int lane = first; lane < last; ++lane) {
        const int cell_part = lane_cell.data[(block << shift) + lane] * parts + (int)number;
        next[lane] = cell_part == 0 ? 0 : cell_end.data[cell_part - 1];
    }
    const wp::uint32 own = (0xFFFFFFFFu >> (32 - (last - first))) << first;
    for (int p = begin; p < end_of_part; ++p) {
        const wp::uint32 mask = pairs.mask.data[p];
        if (mask == 0)
            continue;
        const int at = pairs.bucket.data[p] * part_count + part;
        const int start = (at == 0 ? 0 : bucket_end.data[at - 1]) + pairs.before.data[p][0];
        if (first == 0) {
            pairs.first.data[p] = start;
            const int pairs_at = bucket_count * part_count + at;
            const int total = bucket_end.data[bucket_count * part_count - 1];
            pairs.order.data[bucket_end.data[pairs_at - 1] - total + pairs.before.data[p][1]] = p;
        }
        int* slot = order.data + start;
        const int instance0 = pairs.slots.data[p][0] << shift, instance1 = pairs.slots.data[p][1] << shift;
        const wp::vec_t<2, int> rows = pairs.row.data[p];
        for (wp::uint32 left = mask & own; left != 0; left &= left - 1) {
            const int lane = FIRST_OF(left);
            const int candidate = next[lane]++;
            pair.data[candidate] = wp::vec_t<2, int>(instance0 + lane, instance1 + lane);
            row.data[candidate] = rows;
            slot[COUNT_OF(mask & ((1u << lane) - 1u))] = candidate;
        }
    }
