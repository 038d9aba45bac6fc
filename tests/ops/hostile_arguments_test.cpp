// Bad input, all of it at once: every operator on the samples of its block with one argument (then two) replaced by
// something hostile: extreme integers, other shapes and dtypes, indices outside, NaN, None. A call must end in results
// that can be read or in a typed Error, within seconds and a bounded memory; never in a crash, a hang, an untyped
// exception or an access outside a tensor. Each family runs in a child process that is started again behind a case that
// killed it. Tensors lie against pages that must not be touched, so that wrong accesses are seen without sanitizers.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vesta/error.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "core/storage.h"
#include "golden/compare.h"
#include "ops/op_cases.h"
#include "runtime/cpu/allocator.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/threads.h"

#if defined(__SANITIZE_ADDRESS__)
#define VESTA_TEST_SANITIZED 1
#else
#define VESTA_TEST_SANITIZED 0
#endif

namespace vesta {
namespace {

using namespace optest;

constexpr uint64_t kMemoryLimit = uint64_t{1} << 30;
// CPU time of one case. The limit is for hangs; a sanitized build is some ten times slower.
constexpr int kSecondsPerCase = VESTA_TEST_SANITIZED ? 40 : 4;
constexpr int kPairsPerSample = 40;
constexpr int kMaxFailures = 25;

// Values of integer arguments, list elements and index tensors.
constexpr int64_t kHostileInts[] = {
    0, -1, 1, 2, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int64_t{1} << 40, INT64_MAX / 2 + 1};

// What the child tells: written before each call, so that it is right whatever happens in it.
struct Report {
  std::atomic<int64_t> running{-1};  // number of the case
  std::atomic<int64_t> failures{0};  // untyped exceptions and the like, with texts below
  bool done = false;
  char text[16384] = "";
  char failed[kMaxFailures][4096] = {};
};

// As much of the text as fits.
template <size_t size>
void keep(const std::string& text, char (&to)[size]) {
  to[text.copy(to, size - 1)] = 0;
}

// Memory with a forbidden page before and behind.
class GuardedMemory {
 public:
  GuardedMemory() {
    page_ = size_t(sysconf(_SC_PAGESIZE));
    size_t stride = kSlotBytes + page_;
    base_ = static_cast<char*>(mmap(nullptr, kSlots * stride + page_, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    for (size_t i = 0; i <= kSlots; ++i) mprotect(base_ + i * stride, page_, PROT_NONE);
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { munmap(base_, kSlots * (kSlotBytes + page_) + page_); }

  // Slots are used in turn and a case has fewer tensors than there are slots.
  Tensor copy(const Tensor& t) {
    size_t bytes = size_t(t.numel()) * size_t(t.element_size());
    if (!t.is_cpu() || !t.is_contiguous() || t.is_conj() || t.is_neg() || bytes > kSlotBytes)
      return t.clone();
    char* slot = base_ + page_ + (next_ % kSlots) * (kSlotBytes + page_);
    // The page before for one, the page behind for the next; over a run every argument sees both.
    if (next_ % 3) slot += kSlotBytes - bytes;
    ++next_;
    std::memcpy(slot, t.data_ptr(), bytes);
    return from_blob(slot, t.sizes(), TensorOptions(t.dtype()));
  }

 private:
  static constexpr size_t kSlots = 64, kSlotBytes = 64 * 1024;
  size_t page_ = 0, next_ = 0;
  char* base_ = nullptr;
};

struct Change {
  std::string what;
  size_t arg;
  OwnedValue value;
};

template <class T>
std::string text_of(const T& v) {
  return detail::message(v);
}

// The tensor with each element (or only the last) replaced by an integer, as far as the dtype can hold it.
Tensor with_values(const Tensor& t, int64_t value, bool only_last) {
  Tensor result = t.clone();
  Tensor part = only_last ? result.view({-1}).slice(0, result.numel() - 1) : result;
  part.copy_(full({}, value, TensorOptions(kInt64)));
  return result;
}

void tensor_changes(const Tensor& t, const std::function<void(std::string, Tensor)>& add) {
  int64_t n = t.dim();
  for (int64_t d = 0; d < n; ++d) {
    int64_t size = t.sizes()[size_t(d)];
    std::string where = " in dim " + text_of(d);
    if (size > 0) add("one less" + where, t.slice(d, 0, size - 1).contiguous());
    if (size > 1) add("none" + where, t.slice(d, 0, 0).contiguous());
    if (size > 2) add("one" + where, t.slice(d, 0, 1).contiguous());
    if (size > 0) add("one more" + where, cat({t, t.slice(d, 0, 1)}, d));
  }
  if (n > 0) {
    add("a 0-dim tensor", zeros({}, TensorOptions(t.dtype())));
    add("an empty 1-dim tensor", zeros({0}, TensorOptions(t.dtype())));
  }
  if (n > 1) {
    add("flattened", t.reshape({-1}));
    add("dims reversed", t.permute([&] {
      std::vector<int64_t> order;
      for (int64_t d = n; d-- > 0;) order.push_back(d);
      return order;
    }()));
    add("without its first dim",
        t.sizes()[0] ? t.select(0, 0).contiguous() : zeros(t.sizes().vec(), TensorOptions(t.dtype())).sum(0));
  }
  add("one dim more", t.unsqueeze(0).contiguous());
  {
    std::vector<int64_t> many(size_t(12), 1);
    add("12 dims", zeros(many, TensorOptions(t.dtype())));
  }
  for (DType other : {kBool, kUInt8, kInt32, kInt64, kFloat16, kFloat64, kComplex64})
    if (other != t.dtype()) add(std::string("as ") + dtype_name(other), t.to(other));
  // Types that only store: moved, or refused by name.
  for (DType other : {kUInt16, kFloat8_e4m3fn, kComplexHalf})
    add(std::string("as ") + dtype_name(other), t.to(other));
  add("as float4_e2m1fn_x2", zeros(t.sizes(), TensorOptions(kFloat4_e2m1fn_x2)));
  if (!t.numel()) return;
  if (is_integral(t.dtype(), false)) {
    for (int64_t v : kHostileInts) {
      add("all " + text_of(v), with_values(t, v, false));
      if (t.numel() > 1) add("last " + text_of(v), with_values(t, v, true));
    }
    add("all 1000", with_values(t, 1000 % 127, false));
  } else if (t.is_floating_point()) {
    for (double v : {double(NAN), double(INFINITY), -double(INFINITY), 1e30, -1e30, 0., -1.})
      add("all " + text_of(v), full_like(t, v));
  }
}

std::vector<Change> changes_of(const OpCase& c) {
  std::vector<Change> list;
  Arguments args = filled(*c.op, c.args);
  for (size_t i = 0; i < args.size(); ++i) {
    const SchemaArg& a = c.op->schema.args[i];
    const OwnedValue& v = args[i];
    auto add = [&](const std::string& what, OwnedValue value) {
      list.push_back({a.name + " = " + what, i, std::move(value)});
    };
    if (v.kind() != ValueKind::None) add("None", OwnedValue());
    if (a.type == ArgType::Tensor && a.list) {
      if (v.kind() != ValueKind::TensorList) continue;
      const std::vector<Tensor>& items = v.tensors();
      add("[]", std::vector<Tensor>{});
      if (items.empty()) continue;
      auto shorter = items, longer = items, holed = items;
      shorter.pop_back();
      longer.push_back(items[0].defined() ? items[0] : zeros({2}));
      holed.back() = Tensor();
      add("one item less", shorter);
      add("one item more", longer);
      add("an undefined item", holed);
      for (size_t k = 0; k < items.size() && k < 3; ++k) {
        if (!items[k].defined()) continue;
        tensor_changes(items[k], [&](std::string what, Tensor t) {
          auto changed = items;
          changed[k] = std::move(t);
          add("item " + text_of(k) + " " + what, std::move(changed));
        });
      }
    } else if (a.type == ArgType::Tensor) {
      if (v.is_tensor())
        tensor_changes(v.tensor(), [&](std::string what, Tensor t) { add(what, std::move(t)); });
      else
        for (auto& s : SampleGen::shapes()) add("a tensor", zeros(s));
    } else if (a.type == ArgType::Int && a.list) {
      std::vector<int64_t> items = v.kind() == ValueKind::IntList ? v.ints()
                                   : v.kind() == ValueKind::Int
                                       ? std::vector<int64_t>{v.scalar().raw_int()}
                                       : std::vector<int64_t>(size_t(std::max(a.list_size, 1)), 1);
      auto with = [&](std::vector<int64_t> value) {
        std::string text = "[";
        for (int64_t x : value) text += (text.size() > 1 ? ", " : "") + text_of(x);
        add(text + "]", std::move(value));
      };
      with({});
      for (size_t k = 0; k < items.size(); ++k)
        for (int64_t h : kHostileInts) {
          auto changed = items;
          changed[k] = h;
          with(changed);
        }
      for (int64_t h : kHostileInts) {
        with(std::vector<int64_t>(items.size(), h));
        auto longer = items;
        longer.push_back(h);
        with(longer);
      }
      if (!items.empty()) {
        auto shorter = items;
        shorter.pop_back();
        with(shorter);
        with({items[0]});
      }
      with(std::vector<int64_t>(20, 1));
    } else if (a.type == ArgType::Int) {
      for (int64_t h : kHostileInts) add(text_of(h), h);
      add("-2", int64_t{-2});
      add("7", int64_t{7});
    } else if (a.type == ArgType::Float && a.list) {
      for (double h : {0., 1e-300, 1e30, -1., double(NAN), double(INFINITY)})
        for (size_t n : {size_t{1}, size_t{2}, size_t{3}})
          add(text_of(n) + " times " + text_of(h), std::vector<double>(n, h));
      add("[]", std::vector<double>{});
    } else if (a.type == ArgType::Float) {
      for (double h :
           {0., -0., -1., 2., 0.5, 1e-300, 1e300, -1e300, double(NAN), double(INFINITY), -double(INFINITY)})
        add(text_of(h), h);
    } else if (a.type == ArgType::Scalar && !a.list) {
      for (int64_t h : kHostileInts) add(text_of(h), Scalar(h));
      for (double h : {1e300, -1e300, 1e-300, double(NAN), double(INFINITY), 0.5}) add(text_of(h), Scalar(h));
      add("true", Scalar(true));
      add("1+2i", Scalar(std::complex<double>(1, 2)));
      add("nan+infi", Scalar(std::complex<double>(NAN, INFINITY)));
    } else if (a.type == ArgType::Scalar) {
      add("no scalars", std::vector<Scalar>{});
      add("one huge scalar", std::vector<Scalar>{Scalar(INT64_MAX)});
      add("a NaN and a complex", std::vector<Scalar>{Scalar(NAN), Scalar(std::complex<double>(1, 2))});
    } else if (a.type == ArgType::Bool && a.list) {
      for (size_t n : {size_t{0}, size_t{1}, size_t{2}, size_t{3}})
        add(text_of(n) + " times true", std::vector<bool>(n, true));
    } else if (a.type == ArgType::Bool) {
      add("false", false);
      add("true", true);
    } else if (a.type == ArgType::String) {
      for (const char* s : {"", "nonsense", "\xff\xfe", "%s%n", "...->", "i,j->k", "sum", "mean"})
        add(std::string("\"") + s + "\"", std::string(s));
      add("10000 letters", std::string(10000, 'a'));
    } else if (a.type == ArgType::DType) {
      for (DType t : {kBool, kUInt8, kInt64, kFloat16, kFloat64, kComplex64, kUInt64, kFloat8_e5m2,
                      kFloat4_e2m1fn_x2, kComplexHalf, DType::Undefined})
        add(dtype_name(t), t);
    } else if (a.type == ArgType::MemoryFormat) {
      for (auto f : {MemoryFormat::Contiguous, MemoryFormat::Preserve, MemoryFormat::ChannelsLast,
                     MemoryFormat::ChannelsLast3d})
        add("memory format " + text_of(int(f)), f);
    } else if (a.type == ArgType::Device) {
      add("meta", Device(kMeta));
      add("cuda:3", Device(kCUDA, 3));
    }
  }
  return list;
}

// Reads what came: an element outside the storage is then an access to a forbidden page or to freed memory.
void read_results(const Arguments& results) {
  for (auto& t : flat(results))
    if (t.defined() && t.is_cpu() && t.numel() < 1 << 20) t.clone();
}

class Child {
 public:
  Child(Report& report, int64_t first, bool gradients)
      : report_(report), first_(first), gradients_(gradients) {
    set_num_threads(1);  // CPU time is then that of the case
    cpu::set_memory_limit(kMemoryLimit);
#if !VESTA_TEST_SANITIZED
    rlimit most{rlim_t{4} << 30, rlim_t{4} << 30};  // what the allocator's limit does not see: std::vector
    setrlimit(RLIMIT_AS, &most);
#endif
    rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
  }

  void family(const std::string& name) {
    for (const Op* op : all_ops()) {
      if (name != op->family || op->form == OpForm::Out || !op->def->samples) continue;
      // Elements of one dtype: the changes bring the others.
      int t = int(kFloat32);
      if (!op->def->types.accepts(kFloat32))
        for (t = 0; t < kNumDTypes && !op->def->types.accepts(DType(t));) ++t;
      if (t == kNumDTypes) continue;
      OpCase c{op, DType(t), 0, 17, {}};
      SampleGen gen(c.dtype, c.seed);
      op->def->samples(gen);
      for (auto& s : gen.samples()) {
        c.args = s.args;
        sample(c);
        ++c.sample;
      }
    }
  }

 private:
  void sample(const OpCase& c) {
    std::vector<Change> changes = changes_of(c);
    for (auto& change : changes)
      if (due()) one(c, {&change});
    if (changes.size() < 2) return;
    std::mt19937_64 random(uint64_t(c.sample) * 1000 + c.seed);
    for (int k = 0; k < kPairsPerSample; ++k) {
      const Change &a = changes[random() % changes.size()], &b = changes[random() % changes.size()];
      if (a.arg != b.arg && due()) one(c, {&a, &b});
    }
  }

  bool due() { return ++number_ >= first_; }

  void one(const OpCase& c, std::initializer_list<const Change*> changes) {
    OpCase changed = c;
    changed.args = filled(*c.op, c.args);
    std::string text;
    for (auto* change : changes) {
      changed.args[change->arg] = change->value;
      text += (text.empty() ? "" : ", ") + change->what;
    }
    changed.args = map_tensors(changed.args, [&](const Tensor& t) {
      Tensor copied = guarded_.copy(t);
      if (gradients_ && (t.is_floating_point() || t.is_complex())) copied.requires_grad_();
      return copied;
    });
    text += "\n    " + changed.str();
    keep(text, report_.text);
    report_.running.store(number_, std::memory_order_release);
    itimerval limit{{0, 0}, {kSecondsPerCase, 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
    try {
      Arguments results = call_by_name(c.op->name, changed.args);
      read_results(results);
      if (gradients_) backward(results);
    } catch (const InternalError& e) {
      fails(std::string("internal error: ") + e.what());
    } catch (const Error&) {
      // The one way to refuse.
    } catch (const std::exception& e) {
      fails(std::string("untyped exception: ") + e.what());
    }
  }

  void backward(const Arguments& results) {
    for (auto& t : flat(results))
      if (t.defined() && t.requires_grad() && t.numel() < 1 << 20) {
        Tensor loss = t.is_complex() ? view_as_real(t).sum() : t.sum();
        loss.backward(Tensor(), true);
      }
  }

  void fails(const std::string& what) {
    int64_t k = report_.failures.fetch_add(1);
    if (k < kMaxFailures) {
      keep(what + "\n    " + report_.text, report_.failed[k]);
    }
  }

  Report& report_;
  int64_t first_, number_ = -1;
  bool gradients_;
  GuardedMemory guarded_;
};

void run_family(const std::string& family, bool gradients) {
  void* memory = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto& report = *new (memory) Report();
  int64_t first = 0;
  for (int crashes = 0; crashes < kMaxFailures && !report.done;) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int status = 1;
      try {
        Child(report, first, gradients).family(family);
        report.done = true;
        status = 0;
      } catch (const std::exception& e) {
        fprintf(stderr, "%s: making the cases threw: %s\n", family.c_str(), e.what());
      }
      fflush(nullptr);
      _exit(status);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (report.done) break;
    ++crashes;
    std::string how = WIFSIGNALED(status) ? WTERMSIG(status) == SIGPROF
                                                ? "did not end in " + text_of(kSecondsPerCase) + " s"
                                                : std::string("killed by: ") + strsignal(WTERMSIG(status))
                                          : "exit status " + text_of(WEXITSTATUS(status));
    ADD_FAILURE() << how << "\n    " << report.text;
    first = report.running.load() + 1;
    if (first == 0) break;
  }
  for (int64_t k = 0; k < std::min<int64_t>(report.failures, kMaxFailures); ++k)
    ADD_FAILURE() << report.failed[k];
  EXPECT_TRUE(report.done) << family << ": stopped after " << kMaxFailures << " crashes";
  EXPECT_LE(report.failures.load(), kMaxFailures) << family << ": not all failures are shown";
  munmap(memory, sizeof(Report));
}

class HostileArguments : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Ops, HostileArguments, testing::ValuesIn(families()),
                         [](auto& tested) { return tested.param; });

TEST_P(HostileArguments, EndInResultsOrTypedErrors) { run_family(GetParam(), false); }
TEST_P(HostileArguments, EndInGradientsOrTypedErrors) { run_family(GetParam(), true); }

}  // namespace
}  // namespace vesta
