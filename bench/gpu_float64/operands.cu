// What limits float64 on this GPU: how many fused multiply-adds a second, by how many different
// registers each of them reads.
// nvcc -O3 -std=c++17 -arch=sm_90 operands.cu && ./a.out
#include <cstdio>
#include <cuda_runtime.h>

constexpr int CHAINS = 8, TURNS = 4096, THREADS = 256, REPEATS = 20;

template <bool three> __global__ void chains(double *out, double a, double b)
{
    double x[CHAINS], sum = 0;
    for (int k = 0; k < CHAINS; ++k) x[k] = threadIdx.x + k;
    for (int turn = 0; turn < TURNS; ++turn) {
#pragma unroll
        for (int k = 0; k < CHAINS; ++k)
            x[k] = three ? fma(x[k], x[(k + 1) % CHAINS], x[(k + 3) % CHAINS]) : fma(x[k], a, b);
    }
    for (int k = 0; k < CHAINS; ++k) sum += x[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;  // nothing of the work can be left out
}

int main()
{
    cudaDeviceProp device;
    cudaGetDeviceProperties(&device, 0);
    int clock = 0;
    cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0);
    const double lanes = device.multiProcessorCount * 64.0 * clock * 1e3;
    double *out;
    cudaMalloc(&out, sizeof(double) * device.multiProcessorCount * 8 * THREADS);
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    for (int three = 0; three < 2; ++three) {
        for (int blocks = 2; blocks <= 8; blocks *= 4) {
            const int grid = device.multiProcessorCount * blocks;
            auto launch = [&] { three ? chains<true><<<grid, THREADS>>>(out, 1.0000001, 0.5) : chains<false><<<grid, THREADS>>>(out, 1.0000001, 0.5); };
            launch();
            cudaEventRecord(start);
            for (int i = 0; i < REPEATS; ++i) launch();
            cudaEventRecord(stop);
            cudaEventSynchronize(stop);
            float ms;
            cudaEventElapsedTime(&ms, start, stop);
            const double rate = double(grid) * THREADS * TURNS * CHAINS * REPEATS / (ms * 1e-3);
            printf("%s, %d warps a multiprocessor: %.4e a second, %.1f %% of the lanes\n",
                   three ? "three registers" : "one register", blocks * THREADS / 32, rate, 100 * rate / lanes);
        }
    }
    return cudaGetLastError() != cudaSuccess;
}
