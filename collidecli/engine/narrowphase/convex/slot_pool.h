// C++ of slot_pool.py, by section. The compiler of a kernel reads it: ${NAME} is a value of the module.
// == take_slot
#if defined(__CUDA_ARCH__)
    const unsigned int count = ${GPU_SLOT_COUNT};
    static __device__ unsigned long long slots[${GPU_SLOT_COUNT}][(1 + (${SLOT_BYTES} / 8))];
    const unsigned int first = blockIdx.x * blockDim.x + threadIdx.x;
#else
    const unsigned int count = ${CPU_SLOT_COUNT};
    static unsigned long long slots[${CPU_SLOT_COUNT}][(1 + (${SLOT_BYTES} / 8))];
    // Threads begin at different slots: their stacks, of 8 MiB or so, are at different multiples of that.
    const char on_stack = 0;
    const unsigned int first = (unsigned int)((unsigned long long)&on_stack >> 23);
#endif
    // The first word of a slot is 1 while a thread holds it.
    for (unsigned int k = 0; k < count; ++k) {
        unsigned long long* slot = slots[(first + k) % count];
#if defined(__CUDA_ARCH__)
        if (atomicCAS(slot, 0ull, 1ull) == 0ull) {
            __threadfence();
            return (wp::uint64)(slot + 1);
        }
    }
    __nanosleep(500);
#else
        if (__sync_bool_compare_and_swap(slot, 0ull, 1ull))
            return (wp::uint64)(slot + 1);
    }
#endif
    return 0;
// == give_back_slot
    unsigned long long* slot = (unsigned long long*)address - 1;
#if defined(__CUDA_ARCH__)
    __threadfence();
    atomicExch(slot, 0ull);
#else
    __sync_lock_release(slot);
#endif
