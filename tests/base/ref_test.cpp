// Ref: counts, both forms of destroy, moves, sharing between threads. Result: values and failures.
#include "base/ref.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace vesta {
namespace {

struct Counted {
  static inline std::atomic<int> live{0};
  explicit Counted(int v) : value(v) { live.fetch_add(1); }
  std::atomic<uint32_t> refs{1};
  int value;
  Ref<Counted> next;
};
// Free hook, found by argument-dependent look-up.
void destroy(Counted* object) {
  Counted::live.fetch_sub(1);
  delete object;
}

struct Base {
  std::atomic<uint32_t> refs{1};
  virtual ~Base() = default;
  static void destroy(Base* object) { delete object; }
};
struct Derived : Base {
  explicit Derived(bool* g) : gone(g) {}
  ~Derived() override { *gone = true; }
  bool* gone;
};

Ref<Counted> make(int value) { return Ref<Counted>::adopt(new Counted(value)); }

TEST(Ref, CopiesShareAndTheLastOneDestroys) {
  {
    Ref<Counted> a = make(5);
    EXPECT_EQ(a.use_count(), 1u);
    Ref<Counted> b = a;
    EXPECT_EQ(a.use_count(), 2u);
    EXPECT_EQ(b->value, 5);
    EXPECT_EQ(a, b);
    a.reset();
    EXPECT_EQ(a, nullptr);
    EXPECT_EQ(b.use_count(), 1u);
    EXPECT_EQ(Counted::live.load(), 1);
  }
  EXPECT_EQ(Counted::live.load(), 0);
}

TEST(Ref, MovesReleasesAndSharesKeepTheCountRight) {
  {
    Ref<Counted> a = make(1);
    Ref<Counted> b = std::move(a);
    EXPECT_FALSE(a);
    EXPECT_EQ(b.use_count(), 1u);
    Counted* raw = b.release();
    EXPECT_FALSE(b);
    Ref<Counted> c = Ref<Counted>::share(raw);
    EXPECT_EQ(c.use_count(), 2u);
    Ref<Counted> d = Ref<Counted>::adopt(raw);
    Ref<Counted>& same = d;
    d = same;
    d = std::move(same);
    EXPECT_EQ(d.use_count(), 2u);
    EXPECT_FALSE(Ref<Counted>::share(nullptr));
  }
  EXPECT_EQ(Counted::live.load(), 0);
  static_assert(sizeof(Ref<Counted>) == sizeof(void*));
  static_assert(std::is_nothrow_move_constructible_v<Ref<Counted>>);
}

TEST(Ref, AssigningFromAPartOfTheObjectItselfIsSafe) {
  Ref<Counted> list = make(1);
  list->next = make(2);
  list->next->next = make(3);
  while (list) list = list->next;
  EXPECT_EQ(Counted::live.load(), 0);
}

TEST(Ref, ARefToADerivedConvertsToItsBase) {
  bool gone = false;
  {
    Ref<Base> base = Ref<Derived>::adopt(new Derived(&gone));
    EXPECT_EQ(base.use_count(), 1u);
    EXPECT_FALSE(gone);
  }
  EXPECT_TRUE(gone);
  static_assert(!std::is_convertible_v<Ref<Base>, Ref<Derived>>);
}

TEST(Ref, ThreadsMayShareAndDropConcurrently) {
  for (int round = 0; round < 200; ++round) {
    Ref<Counted> shared = make(0);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([own = shared]() mutable {
        for (int i = 0; i < 50; ++i) Ref<Counted> copy = own;
        own.reset();
      });
    shared.reset();
    for (auto& thread : threads) thread.join();
    ASSERT_EQ(Counted::live.load(), 0);
  }
}

Result<int> parse_digit(char c) {
  if (c < '0' || c > '9') return Failure{std::string("not a digit: ") + c};
  return c - '0';
}

TEST(Result, HoldsAValueOrAMessage) {
  Result<int> good = parse_digit('7');
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 7);
  EXPECT_EQ(good.error(), "");
  Result<int> bad = parse_digit('x');
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.error(), "not a digit: x");
  EXPECT_EQ(parse_digit('x').value_or(3), 3);
  try {
    bad.value();
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "result: no value: not a digit: x");
  }
}

TEST(Result, MoveOnlyValuesAndVoidWork) {
  Result<std::unique_ptr<int>> owned = std::make_unique<int>(4);
  std::unique_ptr<int> taken = std::move(owned).value();
  EXPECT_EQ(*taken, 4);
  Result<void> good;
  Result<void> bad = Failure{"no"};
  EXPECT_TRUE(good);
  EXPECT_NO_THROW(good.value());
  EXPECT_FALSE(bad);
  EXPECT_THROW(bad.value(), InternalError);
}

}  // namespace
}  // namespace vesta
