/* How many multiplications, each with its addition, one core does in a nanosecond at best: of 32-bit floats, in the
 * widest vectors that it has, nothing read or written. Prints the number. Build it for this machine, with -O3
 * -march=native. */
#include <stdio.h>
#include <time.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
enum { CHAINS = 12, ROUNDS = 100000, SLICES = 200 }; /* as many sums as hide how long one takes, and fit registers */

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

static volatile float factor = 0.999f, added = 1e-6f, sink; /* values that no compiler knows */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void multiply(void) {
    vector sums[CHAINS];
    const vector x = factor - (vector){0}, y = added - (vector){0};
    for (int i = 0; i < CHAINS; i++) sums[i] = x;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < CHAINS; i++) sums[i] = sums[i] * x + y;
    for (int i = 1; i < CHAINS; i++) sums[0] += sums[i];
    sink = sums[0][0];
}

int main(void) {
    double least = 1e18;
    for (int slice = 0; slice < SLICES; slice++) {
        const double begin = now();
        multiply();
        const double taken = now() - begin;
        if (taken < least) least = taken;
    }
    printf("%.2f\n", (double)LANES * CHAINS * ROUNDS / least);
    return 0;
}
