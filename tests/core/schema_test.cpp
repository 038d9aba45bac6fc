// The schema parser: every registered text comes back, mistakes are typed errors, and damaged texts never do worse.
#include "core/schema.h"

#include <random>

#include "core/core_testing.h"
#include "core/registry.h"

namespace vesta {
namespace {

using namespace core_testing;

TEST(Schema, parts_of_a_text_are_found) {
  Schema s = parse_schema(
      "add.Tensor(Tensor(a!) self, Tensor? other, Tensor?[] list, int[2] size=[1, 2], *, Scalar alpha=1, str "
      "mode=\"a b\") -> (Tensor(a!) x, Tensor[] y, int)");
  EXPECT_EQ(s.full_name(), "add.Tensor");
  ASSERT_EQ(s.args.size(), 6u);
  EXPECT_TRUE(s.args[0].mutated);
  EXPECT_TRUE(s.args[1].optional);
  EXPECT_TRUE(s.args[2].list && s.args[2].optional_items && !s.args[2].optional);
  EXPECT_EQ(s.args[3].list_size, 2);
  EXPECT_EQ(s.args[3].default_text, "[1, 2]");
  EXPECT_FALSE(s.args[3].keyword_only);
  EXPECT_TRUE(s.args[4].keyword_only);
  EXPECT_EQ(s.args[5].default_text, "\"a b\"");
  ASSERT_EQ(s.results.size(), 3u);
  EXPECT_EQ(s.results[0].name, "x");
  EXPECT_TRUE(s.results[1].list);
  EXPECT_FALSE(s.results[2].tensor);
  EXPECT_EQ(s.num_positional(), 4);
  EXPECT_EQ(s.index_of("alpha"), 4);
  EXPECT_EQ(s.index_of("beta"), -1);
}

TEST(Schema, every_registered_operator_round_trips) {
  ASSERT_GT(all_ops().size(), 500u);
  for (const Op* op : all_ops()) {
    std::string text = op->schema.str();
    EXPECT_EQ(parse_schema(text).str(), text) << op->name;
    EXPECT_EQ(parse_schema(text).full_name(), op->name);
  }
}

TEST(Schema, mistakes_are_value_errors_that_show_the_place) {
  for (const char* bad : {"", "f", "f(", "f(Tensor x", "f(Tensor x)", "f(Tensor x) ->", "f(Tensor x) -> (",
                          "f(Tensr x) -> Tensor", "f(Tensor) -> Tensor", "f(Tensor x,, Tensor y) -> Tensor",
                          "f(Tensor x) -> Tensor y z", "f(int[q] x) -> Tensor",
                          "f(int[99999999999] x) -> Tensor", "f(int x=) -> Tensor", "f(int[] x=[1) -> Tensor",
                          "f(str x=\"a) -> Tensor", "f(Tensor(a x", "f(Tensor x) - > Tensor"}) {
    std::string e = error_of<ValueError>([&] { parse_schema(bad); });
    EXPECT_CONTAINS(e, "schema \"" + std::string(bad) + "\"");
  }
  EXPECT_CONTAINS(error_of<ValueError>([] { parse_schema("f(Tensor x; int y) -> Tensor"); }), "at \"; int y");
}

TEST(Schema, forms_of_a_functional_schema) {
  Schema f = parse_schema("mul.Tensor(Tensor self, Tensor other) -> Tensor");
  EXPECT_EQ(in_place_form(f).str(), "mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)");
  EXPECT_EQ(out_form(f).str(), "mul.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)");
  EXPECT_EQ(enum_name(f), "mul_Tensor");
}

TEST(Schema, damaged_texts_parse_or_are_refused_and_what_parses_is_stable) {
  constexpr uint32_t kSeed = 20261130;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  const std::string alphabet = "Tensor int[]?()*=,->.! \"'0129_aZ\x80\xff";
  size_t parsed = 0, refused = 0;
  const auto& ops = all_ops();
  for (int round = 0; round < 20000; ++round) {
    std::string text = ops[random() % ops.size()]->schema_text;
    for (int k = 0, n = 1 + int(random() % 4); k < n && !text.empty(); ++k) {
      size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 3);
          break;
        case 1:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        case 2:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        default:
          text.resize(at);
      }
    }
    try {
      Schema s = parse_schema(text);
      std::string once = s.str();
      ASSERT_EQ(parse_schema(once).str(), once) << text;
      ++parsed;
    } catch (const ValueError&) {
      ++refused;
    }
  }
  EXPECT_GT(parsed, 100u);
  EXPECT_GT(refused, 100u);
}

}  // namespace
}  // namespace vesta
