#pragma once
// The process's threads. docs/env.md: VESTA_NUM_THREADS sets the start value.
namespace vesta {

// Threads that operators use, the caller included.
int num_threads();
inline int get_num_threads() { return num_threads(); }
// n >= 1; 1 stops the workers. Results do not depend on it.
void set_num_threads(int n);

}  // namespace vesta
