// C++ of candidates.py, by section. The compiler of a kernel reads it: ${NAME} is a value of the module.
// == count_of_part
${BIT_FUNCTIONS}${PAIRS_OF_PART}
    const int* slot_row = layout.slot_row.data + chunk.block_template.data[block] * layout.width;
    int of_lane[32] = {};
    for (int b = 0; b < 2 * bucket_count; ++b)
        buckets.end.data[b * part_count + part] = 0;
    for (int p = begin; p < end_of_part; ++p) {
        wp::uint32 mask = pairs.mask.data[p];
        if (mask == 0)
            continue;
        const int row0 = slot_row[pairs.slots.data[p][0] - block * layout.width];
        const int row1 = slot_row[pairs.slots.data[p][1] - block * layout.width];
        const int bucket = buckets.of_kinds.data[kind.data[row0] * buckets.kind_count + kind.data[row1]];
        pairs.row.data[p] = wp::vec_t<2, int>(row0, row1);
        pairs.bucket.data[p] = (wp::uint8)bucket;
        int* end = buckets.end.data + bucket * part_count + part;
        int* pair_end = end + bucket_count * part_count;
        pairs.before.data[p] = wp::vec_t<2, int>(*end, *pair_end);
        *end += COUNT_OF(mask);
        ++*pair_end;
        for (; mask != 0; mask &= mask - 1)
            ++of_lane[FIRST_OF(mask)];
    }
    for (int lane = 0; lane < chunk.block_size.data[block]; ++lane)
        buckets.cell_end.data[chunk.lane_cell.data[(block << chunk.shift) + lane] * parts + (int)number] = of_lane[lane];
// == write_part
${BIT_FUNCTIONS}${PAIRS_OF_PART}
    int next[32];
    for (int lane = first; lane < last; ++lane) {
        const int cell_part = chunk.lane_cell.data[(block << chunk.shift) + lane] * parts + (int)number;
        next[lane] = cell_part == 0 ? 0 : buckets.cell_end.data[cell_part - 1];
    }
    const wp::uint32 own = (0xFFFFFFFFu >> (32 - (last - first))) << first;
    for (int p = begin; p < end_of_part; ++p) {
        const wp::uint32 mask = pairs.mask.data[p];
        if (mask == 0)
            continue;
        const int at = pairs.bucket.data[p] * part_count + part;
        const int start = (at == 0 ? 0 : buckets.end.data[at - 1]) + pairs.before.data[p][0];
        if (first == 0) {
            pairs.first.data[p] = start;
            const int pairs_at = bucket_count * part_count + at;
            const int total = buckets.end.data[bucket_count * part_count - 1];
            pairs.order.data[buckets.end.data[pairs_at - 1] - total + pairs.before.data[p][1]] = p;
        }
        const int instance0 = pairs.slots.data[p][0] << chunk.shift, instance1 = pairs.slots.data[p][1] << chunk.shift;
        for (wp::uint32 left = mask & own; left != 0; left &= left - 1) {
            const int lane = FIRST_OF(left);
            const int candidate = next[lane]++;
            pair.data[candidate] = wp::vec_t<2, int>(instance0 + lane, instance1 + lane);
            row.data[candidate] = pairs.row.data[p];
            order.data[start + COUNT_OF(mask & ((1u << lane) - 1u))] = candidate;
        }
    }
