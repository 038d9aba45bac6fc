// Symbolic sizes: interned expressions with the traced example's value of each, and the guards that comparisons leave.
#include "vesta/sym_int.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

#include "core/shape_env.h"
#include "vesta/error.h"

namespace vesta {
namespace {

constexpr int64_t kBase = INT64_MIN;  // an encoded expression is kBase + index

struct Expr {
  char op;       // 's' symbol, 'c' constant, + - * / % M(ax) m(in)
  int64_t a, b;  // raw SymInts; a constant's value; a symbol's number
  int64_t hint;
};

// Expressions are shared by all traces and never freed: a few per traced op.
struct Arena {
  std::mutex mutex;
  std::deque<Expr> exprs;
  std::map<std::tuple<char, int64_t, int64_t>, int64_t> interned;

  SymInt intern(char op, int64_t a, int64_t b, int64_t hint) {
    std::lock_guard lock(mutex);
    auto [it, fresh] = interned.try_emplace({op, a, b}, 0);
    if (fresh) {
      it->second = kBase + int64_t(exprs.size());
      exprs.push_back({op, a, b, hint});
    }
    return SymInt::from_raw(it->second);
  }
  bool holds(int64_t raw) {
    std::lock_guard lock(mutex);
    return size_t(raw - kBase) < exprs.size();
  }
  Expr get(int64_t raw) {
    std::lock_guard lock(mutex);
    size_t index = size_t(raw - kBase);
    VESTA_CHECK_AS(ValueError, index < exprs.size(), "a size or index of ", raw, " is out of range");
    return exprs[index];
  }
};
Arena& arena() {
  static auto* a = new Arena;
  return *a;
}

int64_t fold(char op, int64_t a, int64_t b) {
  switch (op) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return b ? a / b : 0;
    case '%':
      return b ? a % b : 0;
    case 'M':
      return a > b ? a : b;
    default:
      return a < b ? a : b;
  }
}

thread_local ShapeEnv* current_env = nullptr;

// Outside a trace nothing is symbolic: such numbers came from the caller.
void expect_trace(SymInt a, SymInt b) {
  if (current_env) return;
  throw ValueError("a size or index of " + std::to_string(std::min(a.raw(), b.raw())) + " is out of range");
}

SymInt make(char op, SymInt a, SymInt b) {
  expect_trace(a, b);
  if ((op == '+' || op == '-') && !b.is_symbolic() && b.raw() == 0) return a;
  if (op == '*' && !a.is_symbolic() && a.raw() == 1) return b;
  if ((op == '*' || op == '/') && !b.is_symbolic() && b.raw() == 1) return a;
  if (op == '*' && ((!a.is_symbolic() && a.raw() == 0) || (!b.is_symbolic() && b.raw() == 0))) return 0;
  if (op == '-' && a.raw() == b.raw()) return 0;
  if (op == '/' && a.raw() == b.raw()) return 1;
  if ((op == '+' || op == '*' || op == 'M' || op == 'm') && a.raw() > b.raw()) std::swap(a, b);
  return arena().intern(op, a.raw(), b.raw(), fold(op, a.hint(), b.hint()));
}

}  // namespace

SymInt SymInt::combine(char op, SymInt a, SymInt b) {
  if (!a.is_symbolic() && !b.is_symbolic())
    throw ValueError("sizes overflow: " + a.str() + " " + op + " " + b.str());
  // Comparisons inside make would recurse into guards: it only compares raw values.
  if (op == '+' && !a.is_symbolic() && a.raw() == 0) return b;
  return make(op, a, b);
}

bool SymInt::decide(const char* op, SymInt a, SymInt b) {
  if (a.raw() == b.raw()) return op[0] == '=';
  expect_trace(a, b);
  bool result = op[0] == '=' ? a.hint() == b.hint() : a.hint() < b.hint();
  // A size of a dynamic dim is at least 2 by contract (0 and 1 are specialised), so comparing it with 0 or 1 is free.
  auto at_least_two = [](SymInt s) { return s.is_symbolic() && arena().get(s.raw()).op == 's'; };
  if ((at_least_two(a) && !b.is_symbolic() && b.raw() < 2) ||
      (at_least_two(b) && !a.is_symbolic() && a.raw() < 2))
    return result;
  if (current_env)
    current_env->add_guard(a.str() +
                           (result         ? std::string(" ") + op + " "
                            : op[0] == '=' ? " != "
                                           : " >= ") +
                           b.str());
  return result;
}

int64_t SymInt::pin() const {
  expect_trace(*this, 0);
  if (current_env) current_env->add_guard(str() + " == " + std::to_string(hint()));
  return hint();
}

int64_t SymInt::hint() const { return is_symbolic() ? arena().get(raw_).hint : raw_; }

std::string SymInt::str() const {
  if (!is_symbolic() || !arena().holds(raw_)) return std::to_string(raw_);
  Expr e = arena().get(raw_);
  std::string a = SymInt::from_raw(e.a).str(), b = SymInt::from_raw(e.b).str();
  switch (e.op) {
    case 's':
      return "s" + std::to_string(e.a);
    case 'M':
      return "max(" + a + ", " + b + ")";
    case 'm':
      return "min(" + a + ", " + b + ")";
    default:
      return "(" + a + " " + e.op + " " + b + ")";
  }
}

SymInt max(SymInt a, SymInt b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.raw() > b.raw() ? a : b;
  return make('M', a, b);
}
SymInt min(SymInt a, SymInt b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.raw() < b.raw() ? a : b;
  return make('m', a, b);
}

ShapeEnv::ShapeEnv() : previous_(current_env) { current_env = this; }
ShapeEnv::~ShapeEnv() { current_env = previous_; }
SymInt ShapeEnv::symbol(int64_t example) {
  VESTA_CHECK(example >= 2, "ShapeEnv: sizes 0 and 1 are specialised, got ", example);
  static std::atomic<int64_t> next{0};
  return arena().intern('s', next++, example, example);
}
void ShapeEnv::add_guard(std::string text) {
  for (auto& g : guards_)
    if (g == text) return;
  guards_.push_back(std::move(text));
}

}  // namespace vesta
