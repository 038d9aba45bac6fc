#pragma once
// The process's one thread pool. Workers spin briefly, then sleep; work below one grain stays on the caller; nested
// calls run inline. Chunking depends only on the range and the grain, never on the number of threads, so results are
// the same for any thread count.
#include <cstdint>

#include "base/function_ref.h"
#include "vesta/threads.h"

namespace vesta {

// Calls body(begin, end) over [begin, end) cut into chunks of `grain` (the last may be shorter), on the pool.
// The first exception is kept, no further chunks are handed out, and it is rethrown here. Thread-safe.
void parallel_for(int64_t begin, int64_t end, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

// Index of the running worker in [0, num_threads()): 0 on the caller.
int thread_index();

}  // namespace vesta
