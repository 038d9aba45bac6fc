#pragma once
// BoolArg: a bool parameter that an integer never reaches. Where another overload has a dim or a number in the place of a
// bool, the conversion to bool would win for an integer: x.var(0) would read as unbiased = false. There tools/opdecl
// declares the function with a BoolArg, which nothing becomes implicitly, and beside it a template for bool itself.
namespace vesta {

class BoolArg {
 public:
  explicit constexpr BoolArg(bool value) : value_(value) {}
  constexpr operator bool() const { return value_; }

 private:
  bool value_;
};

}  // namespace vesta
