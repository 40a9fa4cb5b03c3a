// C++ of pair_groups.py, by section. The compiler of a kernel reads it: ${NAME} is a value of the module.
// == box_bits
    const float* one = box.data + (slot / ${LANES}) * (${BOX_NUMBERS} * ${LANES}) + slot % ${LANES};
    const float* eight = box.data + group * (${BOX_NUMBERS} * ${LANES});
    unsigned int overlap = 0;
#if defined(__clang__) && !defined(__CUDA_ARCH__) && !defined(SCALAR_LANES)
    typedef float Lanes __attribute__((ext_vector_type(${LANES}), aligned(4)));
    typedef bool Flags __attribute__((ext_vector_type(${LANES})));
    #define EIGHT(number) (*(const Lanes*)(eight + (number) * ${LANES}))
    const auto below = (EIGHT(0) < one[(3 * ${LANES})]) & (EIGHT(1) < one[(4 * ${LANES})]) & (EIGHT(2) < one[(5 * ${LANES})]);
    const auto above = (EIGHT(3) > one[0]) & (EIGHT(4) > one[${LANES}]) & (EIGHT(5) > one[(2 * ${LANES})]);
    // A conversion to a vector of bits is one instruction; a loop over the lanes gathers the bits in five.
    overlap = __builtin_bit_cast(unsigned char, __builtin_convertvector(below & above, Flags));
    #undef EIGHT
#else
    for (int k = 0; k < ${LANES}; ++k) {
        bool overlaps = true;
        for (int axis = 0; axis < 3; ++axis)
            overlaps &= eight[axis * ${LANES} + k] < one[(axis + 3) * ${LANES}]
                & eight[(axis + 3) * ${LANES} + k] > one[axis * ${LANES}];
        overlap |= (unsigned int)overlaps << k;
    }
#endif
    return overlap & mask;
