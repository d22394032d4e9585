"""Execution of a list of commands on the CPU: launches, copies and fills, with jumps (`abd.backends.device.command_buffer`).

Warp's replay is slower: it looks every kernel up by its name and packs its arguments at each call.
"""

import warp as wp

from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("cpu",)

WORDS = 4
"""Words per command: its code, and three operands."""
LAUNCH = 0
"""Call the function at a with the bounds at b and the arguments at c."""
COPY = 1
"""Copy c bytes from b to a."""
FILL = 2
"""Set c words of four bytes from a on, alternately to the lower and the upper half of b."""
BRANCH = 3
"""Continue with command b if the int32 at a is 0."""
JUMP = 4
"""Continue with command b."""


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    typedef void (*Kernel)(void*, void*);
    unsigned long long k = 0;
    while (k < (unsigned long long)count) {
        const unsigned long long* word = (const unsigned long long*)commands.data + 4 * k;
        k++;
        if (word[0] == 0)
            ((Kernel)word[1])((void*)word[2], (void*)word[3]);
        else if (word[0] == 1)
            memcpy((void*)word[1], (const void*)word[2], (size_t)word[3]);
        else if (word[0] == 2) {
            unsigned int* out = (unsigned int*)word[1];
            const unsigned int low = (unsigned int)word[2], high = (unsigned int)(word[2] >> 32);
            for (unsigned long long i = 0; i < word[3]; i++)
                out[i] = i & 1 ? high : low;
        }
        else if (word[0] == 4 || *(volatile int*)word[1] == 0)
            k = word[2];
    }
#endif
""")
def run_commands(commands: wp.array(dtype=wp.uint64), count: wp.int32):
    """Run `count` commands of `WORDS` words, which contain addresses of this process; on the CPU only."""
    ...


@wp.kernel
def run(first: wp.int32, commands: wp.array(dtype=wp.uint64), count: wp.int32):
    run_commands(commands, count)
