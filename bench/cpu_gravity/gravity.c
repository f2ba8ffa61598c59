/* Direct-sum softened gravity in float32: what a C programmer writes who knows that the compiler
 * vectorises the inner loop.
 *
 * Structure of arrays; four targets share each load of a source, so that the loop is bound by arithmetic, not by loads.
 * A body pulls itself with a force of zero (the softening keeps the division finite): no branch is needed.
 *
 * acceleration[i] = sum over j of mass[j] * d / (|d|^2 + softening2)^(3/2),  d = position[j] - position[i],  G = 1
 */
#include <math.h>

#define PULL(K)                                                                          \
    {                                                                                    \
        const float dx = x[j] - tx##K, dy = y[j] - ty##K, dz = z[j] - tz##K;             \
        const float inv = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + softening2);        \
        const float pull = mass[j] * (inv * inv * inv);                                  \
        sx##K += pull * dx;                                                              \
        sy##K += pull * dy;                                                              \
        sz##K += pull * dz;                                                              \
    }
#define TARGET(K)                                                                        \
    const float tx##K = x[i + K], ty##K = y[i + K], tz##K = z[i + K];                    \
    float sx##K = 0.0f, sy##K = 0.0f, sz##K = 0.0f;
#define STORE(K) ax[i + K] = sx##K, ay[i + K] = sy##K, az[i + K] = sz##K;

/* The targets i0 <= i < i1 of n bodies; ranges may run in different threads. */
void gravity(const float *restrict x, const float *restrict y, const float *restrict z, const float *restrict mass,
             float *restrict ax, float *restrict ay, float *restrict az, long i0, long i1, long n, float softening2)
{
    long i = i0;
    for (; i + 4 <= i1; i += 4) {
        TARGET(0) TARGET(1) TARGET(2) TARGET(3)
        for (long j = 0; j < n; j++) {
            PULL(0) PULL(1) PULL(2) PULL(3)
        }
        STORE(0) STORE(1) STORE(2) STORE(3)
    }
    for (; i < i1; i++) { /* at most three targets are left */
        TARGET(0)
        for (long j = 0; j < n; j++) {
            PULL(0)
        }
        STORE(0)
    }
}
