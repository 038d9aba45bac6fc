// SmallVector against std::vector: random operations, object counts, self-reference, exceptions.
#include "base/small_vector.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace vesta {
namespace {

// Counts live objects, keeps its own address (a bitwise move would be found), and throws on a chosen copy.
struct Tracked {
  static inline int live = 0;
  static inline int copies_until_throw = -1;  // -1: never
  explicit Tracked(int v = 0) : value(v), self(this) { ++live; }
  Tracked(const Tracked& other) : value(other.value), self(this) {
    if (copies_until_throw == 0) throw std::runtime_error("copy");
    if (copies_until_throw > 0) --copies_until_throw;
    ++live;
  }
  Tracked& operator=(const Tracked& other) {
    value = other.value;
    return *this;
  }
  ~Tracked() {
    EXPECT_EQ(self, this);
    --live;
  }
  friend bool operator==(const Tracked& a, const Tracked& b) { return a.value == b.value && a.self == &a; }
  int value;
  Tracked* self;
};

template <class T, size_t N>
std::vector<T> plain(const SmallVector<T, N>& v) {
  return std::vector<T>(v.begin(), v.end());
}

TEST(SmallVector, RandomOperationsMatchStdVector) {
  constexpr unsigned kSeed = 5;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  {
    SmallVector<Tracked, 4> ours;
    std::vector<Tracked> reference;
    for (int i = 0; i < 5000; ++i) {
      int value = static_cast<int>(random() % 1000);
      size_t at = reference.empty() ? 0 : random() % reference.size();
      switch (random() % 9) {
        case 0:
        case 1:
          ours.push_back(Tracked(value));
          reference.push_back(Tracked(value));
          break;
        case 2:
          ASSERT_EQ(ours.insert(ours.begin() + at, Tracked(value))->value, value);
          reference.insert(reference.begin() + static_cast<long>(at), Tracked(value));
          break;
        case 3:
          if (reference.empty()) break;
          ours.erase(ours.begin() + at);
          reference.erase(reference.begin() + static_cast<long>(at));
          break;
        case 4: {
          size_t to = at + (reference.size() - at) / 3;
          ours.erase(ours.begin() + at, ours.begin() + to);
          reference.erase(reference.begin() + static_cast<long>(at),
                          reference.begin() + static_cast<long>(to));
          break;
        }
        case 5: {
          size_t size = random() % 12;
          ours.resize(size, Tracked(value));
          reference.resize(size, Tracked(value));
          break;
        }
        case 6: {
          SmallVector<Tracked, 4> copy(ours);
          ASSERT_EQ(copy, ours);
          ours = std::move(copy);
          ASSERT_TRUE(copy.empty());
          break;
        }
        case 7: {
          SmallVector<Tracked, 4> other{Tracked(1), Tracked(2)};
          other = ours;
          SmallVector<Tracked, 4> moved(std::move(other));
          std::swap(moved, ours);
          break;
        }
        case 8:
          if (!reference.empty()) {
            ours.pop_back();
            reference.pop_back();
          }
          break;
      }
      ASSERT_EQ(plain(ours), reference) << i;
    }
  }
  EXPECT_EQ(Tracked::live, 0);
}

TEST(SmallVector, StaysInlineUpToNAndGoesToTheHeapBeyond) {
  SmallVector<int64_t, 3> v;
  for (int64_t i = 0; i < 3; ++i) v.push_back(i);
  EXPECT_FALSE(v.on_heap());
  v.push_back(3);
  EXPECT_TRUE(v.on_heap());
  EXPECT_EQ(plain(v), (std::vector<int64_t>{0, 1, 2, 3}));
  const int64_t* data = v.data();
  SmallVector<int64_t, 3> moved(std::move(v));
  EXPECT_EQ(moved.data(), data) << "a heap block is handed over, not copied";
  EXPECT_TRUE(v.empty());
  v.push_back(9);
  EXPECT_EQ(v[0], 9);
}

TEST(SmallVector, AnElementOfTheVectorMayBePushedWhileItGrows) {
  SmallVector<std::string, 2> v{"a string that is too long for the small buffer", "b"};
  v.push_back(v[0]);
  EXPECT_EQ(v[2], v[0]);
  v.resize(9, v[0]);
  EXPECT_EQ(v[8], v[0]);
  v = static_cast<const SmallVector<std::string, 2>&>(v);
  EXPECT_EQ(v.size(), 9u);
}

TEST(SmallVector, AnExceptionWhileGrowingChangesNothing) {
  {
    SmallVector<Tracked, 2> v{Tracked(1), Tracked(2)};
    for (int at = 0; at < 3; ++at) {
      Tracked extra(3);
      Tracked::copies_until_throw = at;
      EXPECT_THROW(v.push_back(extra), std::runtime_error);
      Tracked::copies_until_throw = -1;
      ASSERT_EQ(v.size(), 2u);
      EXPECT_FALSE(v.on_heap());
      EXPECT_EQ(v[0], Tracked(1));
      EXPECT_EQ(v[1], Tracked(2));
    }
  }
  EXPECT_EQ(Tracked::live, 0);
}

TEST(SmallVector, MoveOnlyElementsWork) {
  SmallVector<std::unique_ptr<int>, 2> v;
  for (int i = 0; i < 10; ++i) v.push_back(std::make_unique<int>(i));
  auto moved = std::move(v);
  v = std::move(moved);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(*v[static_cast<size_t>(i)], i);
  static_assert(std::is_nothrow_move_constructible_v<SmallVector<std::unique_ptr<int>, 2>>);
}

TEST(SmallVector, ComparesLikeItsElementsAndConvertsToASpan) {
  using V = SmallVector<int, 4>;
  EXPECT_EQ((V{1, 2}), (V{1, 2}));
  EXPECT_NE((V{1, 2}), (V{1, 2, 0}));
  EXPECT_LT((V{1, 2}), (V{1, 3}));
  EXPECT_LT((V{1}), (V{1, 0}));
  V v{4, 5};
  std::span<const int> span = v;
  EXPECT_EQ(span.size(), 2u);
  EXPECT_EQ(V(span), v);
  EXPECT_EQ(V(3), (V{0, 0, 0}));
}

}  // namespace
}  // namespace vesta
