// SPDX-License-Identifier: Apache-2.0
// Included into every file of a wheel by its compilers (compilers.py). zig links its own functions
// in place of these, unless glibc's are requested by their versions. glibc has a variant of each
// per CPU generation, and their results are the same as in any other build on the same system, to
// the last bit. Versions: the newest of each in glibc 2.28 for x86-64.
#if !defined(HEADRACE_GLIBC_SYMBOLS) && !defined(__ASSEMBLER__)
#define HEADRACE_GLIBC_SYMBOLS

__asm__(".symver ceil, ceil@GLIBC_2.2.5");
__asm__(".symver ceilf, ceilf@GLIBC_2.2.5");
__asm__(".symver cos, cos@GLIBC_2.2.5");
__asm__(".symver cosf, cosf@GLIBC_2.2.5");
__asm__(".symver exp, exp@GLIBC_2.2.5");
__asm__(".symver exp2, exp2@GLIBC_2.2.5");
__asm__(".symver exp2f, exp2f@GLIBC_2.27");
__asm__(".symver expf, expf@GLIBC_2.27");
__asm__(".symver floor, floor@GLIBC_2.2.5");
__asm__(".symver floorf, floorf@GLIBC_2.2.5");
__asm__(".symver fma, fma@GLIBC_2.2.5");
__asm__(".symver fmaf, fmaf@GLIBC_2.2.5");
__asm__(".symver fmod, fmod@GLIBC_2.2.5");
__asm__(".symver fmodf, fmodf@GLIBC_2.2.5");
__asm__(".symver log, log@GLIBC_2.2.5");
__asm__(".symver log10, log10@GLIBC_2.2.5");
__asm__(".symver log10f, log10f@GLIBC_2.2.5");
__asm__(".symver log2, log2@GLIBC_2.2.5");
__asm__(".symver log2f, log2f@GLIBC_2.27");
__asm__(".symver logf, logf@GLIBC_2.27");
__asm__(".symver round, round@GLIBC_2.2.5");
__asm__(".symver roundf, roundf@GLIBC_2.2.5");
__asm__(".symver sin, sin@GLIBC_2.2.5");
__asm__(".symver sincos, sincos@GLIBC_2.2.5");
__asm__(".symver sincosf, sincosf@GLIBC_2.2.5");
__asm__(".symver sinf, sinf@GLIBC_2.2.5");
__asm__(".symver tan, tan@GLIBC_2.2.5");
__asm__(".symver tanf, tanf@GLIBC_2.2.5");
__asm__(".symver trunc, trunc@GLIBC_2.2.5");
__asm__(".symver truncf, truncf@GLIBC_2.2.5");
__asm__(".symver bcmp, bcmp@GLIBC_2.2.5");
__asm__(".symver memcmp, memcmp@GLIBC_2.2.5");
__asm__(".symver memcpy, memcpy@GLIBC_2.14");
__asm__(".symver memmove, memmove@GLIBC_2.2.5");
__asm__(".symver memset, memset@GLIBC_2.2.5");
__asm__(".symver strlen, strlen@GLIBC_2.2.5");

#endif
