// LoaderEngine: worker threads, a bounded number of batches under way, order, exceptions, state.
// The caller's thread alone runs the sampler and numbers the jobs, so order does not depend on the workers, which only
// turn numbers into batches. The threads are the loader's own: a batch may block on a disk, and the pool must not.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "vesta/data.h"
#include "vesta/ops.h"

namespace vesta::data {

// One per thread, since workers make batches at the same time; it carries nothing from one batch to the next.
Generator& batch_generator() {
  thread_local Generator generator;
  return generator;
}

namespace detail {

size_t checked_size(std::optional<size_t> size) {
  VESTA_CHECK(size, "make_data_loader: this dataset does not know its size; pass a sampler");
  return *size;
}

namespace {

OwnedBatch no_batch() {
  return OwnedBatch(nullptr, [](void*) {});
}

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9e3779b97f4a7c15u * (b + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

struct Job {
  uint64_t epoch_run;  // which begin_epoch made it: results of an abandoned epoch are dropped
  uint64_t number;     // in its epoch
  uint64_t seed;       // of its random transforms
  std::vector<size_t> indices;
};

struct Result {
  OwnedBatch batch = no_batch();
  std::exception_ptr error;
};

}  // namespace

uint64_t loader_seed(const DataLoaderOptions& options) {
  if (options.seed()) return *options.seed();
  Generator generator = default_generator();
  return mix(generator.current_seed(), generator.take_calls());
}

OrderedDict<std::string, Tensor> to_state_dict(const DataLoaderState& state) {
  OrderedDict<std::string, Tensor> dict("loader state");
  const auto put = [&](const char* name, uint64_t value) {
    dict.insert(name, vesta::full({}, int64_t(value), TensorOptions(kInt64)));
  };
  put("seed", state.seed);
  put("epoch", state.epoch);
  put("position", state.position);
  return dict;
}

DataLoaderState from_state_dict(const OrderedDict<std::string, Tensor>& dict) {
  const auto get = [&](const char* name) {
    const Tensor* value = dict.find(name);
    VESTA_CHECK(value && value->defined() && value->numel() == 1 && value->dtype() == kInt64,
                "DataLoader::load_state_dict: expected one int64 in '", name, "'");
    return uint64_t(value->item<int64_t>());
  };
  return {get("seed"), get("epoch"), get("position")};
}

struct LoaderEngine::Impl {
  DataLoaderOptions options;
  std::unique_ptr<samplers::Sampler> sampler;
  Produce produce;
  size_t max_jobs = 0;

  // Of the caller's thread.
  uint64_t seed = 0, epoch = 0, position = 0;
  bool started = false;  // an epoch is under way
  bool sampler_done = false;
  bool resume = false;     // load_state came last
  bool finished = false;   // the end of the epoch was seen
  uint64_t submitted = 0;  // jobs made in this epoch, those before `position` at resume included

  // Shared with the workers, under the mutex.
  std::mutex mutex;
  std::condition_variable job_ready, result_ready;
  std::deque<Job> jobs;
  std::map<uint64_t, Result> results;  // by number
  uint64_t epoch_run = 0;
  size_t outstanding = 0;  // jobs of this run that are queued, being made or waiting in results
  bool stop = false;

  std::vector<std::thread> threads;

  Result make(size_t worker, const Job& job) {
    Result result;
    try {
      batch_generator().set_state(job.seed, 0);
      result.batch = produce(worker, job.indices);
    } catch (...) {
      result.error = std::current_exception();
    }
    return result;
  }

  void work(size_t worker) {
    std::unique_lock lock(mutex);
    while (true) {
      job_ready.wait(lock, [&] { return stop || !jobs.empty(); });
      if (stop) return;
      const Job job = std::move(jobs.front());
      jobs.pop_front();
      lock.unlock();
      Result result = make(worker, job);
      lock.lock();
      if (job.epoch_run == epoch_run) {
        results.emplace(job.number, std::move(result));
        result_ready.notify_one();
      } else {
        lock.unlock();  // destroys a batch of any size
        result = Result();
        lock.lock();
      }
    }
  }

  std::optional<Job> next_job() {
    if (sampler_done) return std::nullopt;
    auto indices = sampler->next(options.batch_size());
    if (!indices || (options.drop_last() && indices->size() < options.batch_size())) {
      sampler_done = true;
      return std::nullopt;
    }
    const uint64_t number = submitted++;
    return Job{epoch_run, number, mix(mix(seed, epoch), number), std::move(*indices)};
  }

  void start_epoch() {
    std::map<uint64_t, Result> dropped;
    {
      const std::lock_guard lock(mutex);
      jobs.clear();
      dropped.swap(results);
      ++epoch_run;
      outstanding = 0;
    }
    sampler->reset(seed, epoch);
    sampler_done = false;
    started = true;
    resume = false;
    finished = false;
    submitted = 0;
    while (submitted < position && next_job()) {
    }
    VESTA_CHECK(submitted == position, "DataLoader: the saved position ", position,
                " is behind the end of the epoch, which has ", submitted,
                " batches; have the data or the batch size changed?");
  }

  void fill() {
    while (true) {
      {
        const std::lock_guard lock(mutex);
        if (outstanding >= max_jobs) return;
      }
      // The sampler may throw: nothing is counted before it returns.
      auto job = next_job();
      if (!job) return;
      {
        const std::lock_guard lock(mutex);
        ++outstanding;
        jobs.push_back(std::move(*job));
      }
      job_ready.notify_one();
    }
  }

  std::optional<Result> next() {
    if (threads.empty()) {
      const auto job = next_job();
      if (!job) return std::nullopt;
      return make(0, *job);
    }
    fill();
    std::unique_lock lock(mutex);
    if (outstanding == 0) return std::nullopt;
    const auto ready = [&] {
      return !results.empty() && (!options.enforce_ordering() || results.begin()->first == position);
    };
    if (const auto timeout = options.timeout_ms()) {
      VESTA_CHECK(result_ready.wait_for(lock, std::chrono::milliseconds(*timeout), ready),
                  "DataLoader: no batch within ", *timeout, " ms");
    } else {
      result_ready.wait(lock, ready);
    }
    Result result = std::move(results.begin()->second);
    results.erase(results.begin());
    --outstanding;
    return result;
  }
};

LoaderEngine::LoaderEngine(const DataLoaderOptions& options, std::unique_ptr<samplers::Sampler> sampler,
                           Produce produce)
    : impl_(std::make_unique<Impl>()) {
  VESTA_CHECK(options.batch_size() > 0, "DataLoader: expected batch_size > 0");
  VESTA_CHECK(options.max_jobs().value_or(1) > 0, "DataLoader: expected max_jobs > 0");
  VESTA_CHECK(sampler, "DataLoader: the sampler is null");
  impl_->options = options;
  impl_->sampler = std::move(sampler);
  impl_->produce = std::move(produce);
  impl_->max_jobs = options.max_jobs().value_or(2 * options.workers());
  impl_->seed = loader_seed(options);
  try {
    for (size_t i = 0; i < options.workers(); ++i)
      impl_->threads.emplace_back([impl = impl_.get(), i] { impl->work(i); });
  } catch (...) {
    stop();  // the threads that were made must not outlive us
    throw;
  }
}

LoaderEngine::~LoaderEngine() { stop(); }

void LoaderEngine::stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->job_ready.notify_all();
  for (auto& thread : impl_->threads) thread.join();
  impl_->threads.clear();
}

void LoaderEngine::begin_epoch() {
  if (!impl_->resume) {
    if (impl_->started) ++impl_->epoch;
    impl_->position = 0;
  }
  impl_->start_epoch();
}

OwnedBatch LoaderEngine::next() {
  if (!impl_->started || impl_->resume) impl_->start_epoch();
  auto result = impl_->next();
  if (!result) {
    impl_->finished = true;
    return no_batch();
  }
  ++impl_->position;
  if (result->error) std::rethrow_exception(result->error);
  return std::move(result->batch);
}

DataLoaderState LoaderEngine::state() const {
  const Impl& impl = *impl_;
  if (impl.finished && !impl.resume) return {impl.seed, impl.epoch + 1, 0};
  return {impl.seed, impl.epoch, impl.position};
}

void LoaderEngine::load_state(const DataLoaderState& state) {
  impl_->seed = state.seed;
  impl_->epoch = state.epoch;
  impl_->position = state.position;
  impl_->resume = true;
}

}  // namespace detail
}  // namespace vesta::data
