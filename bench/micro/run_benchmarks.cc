// The micro-benchmarks of this folder as one program: bench-micro --benchmark_filter=PathDecision
#include <benchmark/benchmark.h>

BENCHMARK_MAIN();
