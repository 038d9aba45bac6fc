// Recursive-descent parser and printer of operator schemas.
#include "core/schema.h"

#include <cctype>

#include "vesta/error.h"

namespace vesta {
namespace {

struct TypeName {
  const char* text;
  ArgType type;
};
constexpr TypeName kTypeNames[] = {
    {"Tensor", ArgType::Tensor},
    {"Scalar", ArgType::Scalar},
    {"SymInt", ArgType::Int},
    {"int", ArgType::Int},
    {"float", ArgType::Float},
    {"bool", ArgType::Bool},
    {"str", ArgType::String},
    {"ScalarType", ArgType::DType},
    {"Device", ArgType::Device},
    {"Layout", ArgType::Layout},
    {"MemoryFormat", ArgType::MemoryFormat},
    {"Generator", ArgType::Generator},
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Schema parse() {
    Schema s;
    s.name = word();
    if (accept(".")) s.overload = word();
    expect("(");
    bool keyword_only = false;
    while (!accept(")")) {
      if (accept("*")) {
        keyword_only = true;
      } else {
        s.args.push_back(argument());
        s.args.back().keyword_only = keyword_only;
      }
      if (!peek(")")) expect(",");
    }
    expect("->");
    if (accept("(")) {
      while (!accept(")")) {
        s.results.push_back(result());
        if (!peek(")")) expect(",");
      }
    } else {
      s.results.push_back(result());
    }
    space();
    if (at_ != text_.size()) fail("the end");
    return s;
  }

 private:
  SchemaArg argument() {
    SchemaArg a;
    a.type = type_name();
    alias(a.aliases, a.mutated);
    if (accept("?")) a.optional = true;
    if (accept("[")) {
      a.list = true;
      if (a.optional) {
        a.optional = false;
        a.optional_items = true;
      }
      if (!peek("]")) a.list_size = std::stoi(number());
      expect("]");
      alias(a.aliases, a.mutated);
      if (accept("?")) a.optional = true;
    }
    a.name = word();
    if (accept("=")) {
      a.has_default = true;
      a.default_text = default_value();
    }
    return a;
  }
  SchemaResult result() {
    SchemaResult r;
    r.type = type_name();
    r.tensor = r.type == ArgType::Tensor;
    alias(r.aliases, r.mutated);
    if (accept("[")) {
      r.list = true;
      expect("]");
      alias(r.aliases, r.mutated);
    }
    space();
    if (at_ < text_.size() && (std::isalpha(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      r.name = word();
    return r;
  }
  // "(a)", "(a!)", "(a -> *)", "(a|b)"
  void alias(bool& aliases, bool& mutated) {
    if (at_ >= text_.size() || text_[at_] != '(') return;
    size_t close = text_.find(')', at_);
    if (close == std::string_view::npos) fail("')'");
    std::string_view inner = text_.substr(at_ + 1, close - at_ - 1);
    (inner.find('!') != std::string_view::npos ? mutated : aliases) = true;
    at_ = close + 1;
  }
  std::string default_value() {
    space();
    size_t start = at_;
    if (peek("[")) {
      while (at_ < text_.size() && text_[at_] != ']') ++at_;
      ++at_;
    } else if (peek("\"") || peek("'")) {
      char quote = text_[at_++];
      while (at_ < text_.size() && text_[at_] != quote) ++at_;
      ++at_;
    } else {
      while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')' && text_[at_] != ' ') ++at_;
    }
    if (at_ > text_.size() || at_ == start) fail("a default value");
    return std::string(text_.substr(start, at_ - start));
  }
  ArgType type_name() {
    std::string w = word();
    for (auto& t : kTypeNames)
      if (w == t.text) return t.type;
    throw ValueError("schema \"" + std::string(text_) + "\": unknown type " + w);
  }
  std::string word() {
    space();
    size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    if (at_ == start) fail("a name");
    return std::string(text_.substr(start, at_ - start));
  }
  std::string number() {
    std::string w = word();
    for (char c : w)
      if (!std::isdigit(static_cast<unsigned char>(c)) || w.size() > 4) fail("a number");
    return w;
  }
  void space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool peek(std::string_view token) {
    space();
    return text_.substr(at_, token.size()) == token;
  }
  bool accept(std::string_view token) {
    if (!peek(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail("'" + std::string(token) + "'");
  }
  [[noreturn]] void fail(const std::string& wanted) {
    throw ValueError("schema \"" + std::string(text_) + "\": expected " + wanted + " at \"" +
                     std::string(text_.substr(at_ < text_.size() ? at_ : text_.size())) + "\"");
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string type_text(ArgType t) {
  if (t == ArgType::Int) return "int";
  for (auto& n : kTypeNames)
    if (n.type == t) return n.text;
  return "?";
}
const char* alias_text(bool aliases, bool mutated) { return mutated ? "(a!)" : aliases ? "(a)" : ""; }

}  // namespace

Schema parse_schema(std::string_view text) { return Parser(text).parse(); }

std::string Schema::str() const {
  std::string s = full_name() + "(";
  bool keywords = false;
  for (size_t i = 0; i < args.size(); ++i) {
    auto& a = args[i];
    if (i) s += ", ";
    if (a.keyword_only && !keywords) {
      keywords = true;
      s += "*, ";
    }
    s += type_text(a.type);
    s += alias_text(a.aliases, a.mutated);
    if (a.optional_items) s += "?";
    if (a.list) s += a.list_size ? "[" + std::to_string(a.list_size) + "]" : "[]";
    if (a.optional) s += "?";
    s += " " + a.name;
    if (a.has_default) s += "=" + a.default_text;
  }
  s += ") -> ";
  if (results.size() != 1) s += "(";
  for (size_t i = 0; i < results.size(); ++i) {
    auto& r = results[i];
    if (i) s += ", ";
    s += type_text(r.type);
    s += alias_text(r.aliases, r.mutated);
    if (r.list) s += "[]";
    if (!r.name.empty()) s += " " + r.name;
  }
  if (results.size() != 1) s += ")";
  return s;
}

int Schema::index_of(std::string_view arg) const {
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].name == arg) return int(i);
  return -1;
}
int Schema::num_positional() const {
  int n = 0;
  for (auto& a : args) n += !a.keyword_only;
  return n;
}

Schema in_place_form(const Schema& f) {
  Schema s = f;
  s.name += "_";
  s.args[0].mutated = true;
  for (auto& r : s.results) r.mutated = true;
  if (s.args[0].list) s.results.clear();  // _foreach_add_: the list is written, nothing is returned
  return s;
}
Schema out_form(const Schema& f) {
  Schema s = f;
  s.overload = f.overload.empty() ? "out" : f.overload + "_out";
  for (size_t j = 0; j < s.results.size(); ++j) {
    SchemaArg a;
    a.name = s.results.size() == 1 ? "out" : "out" + std::to_string(j);
    a.mutated = true;
    a.keyword_only = true;
    s.args.push_back(a);
    s.results[j].mutated = true;
  }
  return s;
}

std::string enum_name(const Schema& s) { return s.overload.empty() ? s.name : s.name + "_" + s.overload; }

}  // namespace vesta
