// The registry: each block is complete, says what docs/ops.tsv says about it, and its schema text is the schema.
#include <gtest/gtest.h>
#include <vesta/error.h>

#include <map>
#include <set>
#include <sstream>

#include "base/file.h"
#include "core/registry.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

struct Row {
  std::string sharding;
  bool differentiable = false;
};

// docs/ops.tsv by full name. Tests run in tests/.
const std::map<std::string, Row>& table() {
  static const auto* rows = [] {
    auto* map = new std::map<std::string, Row>;
    std::istringstream lines(read_all("../docs/ops.tsv"));
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      std::vector<std::string> cells;
      std::istringstream columns(line);
      for (std::string cell; std::getline(columns, cell, '\t');) cells.push_back(cell);
      if (cells.size() >= 8) (*map)[cells[0]] = {cells[7], cells[3] == "y"};
    }
    return map;
  }();
  return *rows;
}

std::vector<const Op*> blocks() {
  std::vector<const Op*> list;
  for (const Op* op : all_ops())
    if (op->form == OpForm::Functional && std::string_view(op->family) != "custom") list.push_back(op);
  return list;
}

// Blocks without samples, with the reason.
const std::map<std::string, const char*>& without_samples() {
  static const auto* list = new std::map<std::string, const char*>{
      {"retain_grad", "asks for a result of a recorded call, which the suite's arguments are not"}};
  return *list;
}

TEST(Registry, EveryBlockHasSamplesAndADocOfOneSentence) {
  for (const Op* op : blocks()) {
    bool excused = without_samples().count(op->name);
    EXPECT_NE(op->def->samples != nullptr, excused) << op->name;
    std::string doc = op->def->doc;
    EXPECT_TRUE(doc.size() >= 3 && doc.back() == '.') << op->name << ": doc '" << doc << "'";
  }
}

TEST(Registry, EverySampleListGivesCasesForSomeDtype) {
  for (const Op* op : blocks()) {
    if (!op->def->samples) continue;
    size_t cases = 0;
    for (int t = 0; t < kNumDTypes; ++t) {
      if (!op->def->types.accepts(DType(t))) continue;
      SampleGen gen(DType(t), 1);
      op->def->samples(gen);
      cases += gen.samples().size();
    }
    EXPECT_GT(cases, 0u) << op->name;
  }
}

TEST(Registry, EveryBlockSaysHowItIsDifferentiated) {
  for (const Op* op : blocks()) {
    const OpDef& d = *op->def;
    EXPECT_TRUE(d.vjp || d.decompose || d.non_differentiable)
        << op->name << ": no vjp, no decomposition, and not declared non_differentiable";
    EXPECT_FALSE(d.vjp && d.non_differentiable) << op->name;
    EXPECT_TRUE(d.vjp || d.save.count == 0) << op->name << ": saves tensors for no vjp";
  }
}

// Names that ops.tsv has not got are Vesta's own helpers.
bool own(const Op& op) { return op.schema.name.starts_with('_'); }

// The row of the block; one that exists only in place may have its functional form's row, of any overload.
const Row* row_of(const Op& op) {
  auto row = table().find(op.name);
  if (row == table().end() && op.schema.name.ends_with('_')) {
    const std::string base = op.schema.name.substr(0, op.schema.name.size() - 1);
    row = table().lower_bound(base);
    if (row != table().end() && row->first != base && !row->first.starts_with(base + "."))
      row = table().end();
  }
  return row == table().end() ? nullptr : &row->second;
}

TEST(Registry, EveryPublicBlockIsARowOfTheTableWithItsShardingClass) {
  std::set<std::string> classes;
  for (auto& [name, row] : table()) classes.insert(row.sharding);
  ASSERT_GT(table().size(), 1000u);
  for (const Op* op : blocks()) {
    const Row* row = row_of(*op);
    if (row && table().count(op->name))
      EXPECT_EQ(op->def->shard.rule, row->sharding) << op->name;
    else if (row)
      continue;
    else
      EXPECT_TRUE(own(*op)) << op->name << " is no row of docs/ops.tsv; Vesta's own helpers start with _";
    EXPECT_TRUE(classes.count(op->def->shard.rule))
        << op->name << ": unknown sharding class '" << op->def->shard.rule << "'";
  }
}

// Rows whose formula is a constant zero, or whose result is bool or an index: nothing carries a gradient.
const std::set<std::string> kConstantOfTheInput = {
    "zeros_like", "ones_like", "full_like", "empty_like", "argwhere", "nonzero_numpy", "isfinite", "isreal",
    "where", "randn_like", "rand_like", "_unique", "_unique2", "unique_dim", "unique_consecutive",
    "unique_dim_consecutive", "nextafter",
    // PyTorch has a formula that only throws:
    "geqrf",
    // second derivatives that are not offered:
    "native_batch_norm_backward", "native_group_norm_backward", "_standard_gamma_grad"};

TEST(Registry, DifferentiableRowsHaveAGradient) {
  for (const Op* op : blocks()) {
    const Row* row = row_of(*op);
    if (row && row->differentiable && !kConstantOfTheInput.count(op->name)) {
      EXPECT_FALSE(op->def->non_differentiable) << op->name;
    }
  }
}

// Which alias set an annotation names is not kept: "(b!)" is printed as "(a!)", "(a -> *)" as "(a)"; SymInt is int.
std::string without_alias_names(std::string text) {
  for (size_t at = text.find("SymInt"); at != std::string::npos; at = text.find("SymInt", at))
    text.replace(at, 6, "int");
  for (size_t at = text.find("Tensor(", text.find('(')); at != std::string::npos;
       at = text.find("Tensor(", at + 1)) {
    size_t open = at + 6, close = text.find(')', open);
    bool writes = text.substr(open, close - open).find('!') != std::string::npos;
    text.replace(open, close - open + 1, writes ? "(a!)" : "(a)");
  }
  return text;
}

TEST(Registry, SchemasSurviveParsingAndPrinting) {
  for (const Op* op : all_ops()) {
    std::string text = op->schema.str();
    EXPECT_EQ(parse_schema(text).str(), text);
    if (op->form == OpForm::Functional) {
      EXPECT_EQ(text, without_alias_names(op->def->schema)) << "the block's text is not the canonical one";
    }
  }
}

TEST(Registry, EveryFormIsFoundByItsNameAndPointsToItsFunctionalForm) {
  for (const Op* op : all_ops()) {
    EXPECT_EQ(find_op(op->name), op) << op->name;
    EXPECT_EQ(&op_of(op->id), op) << op->name;
    EXPECT_EQ(op_of(op->functional).def, op->def) << op->name;
    EXPECT_EQ(op_of(op->functional).form, OpForm::Functional) << op->name;
  }
  EXPECT_EQ(find_op("no_such_op"), nullptr);
  EXPECT_THROW(call_by_name("no_such_op", {}), NotImplementedError);
}

constexpr OpDef kDuplicate[] = {OP(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    .decompose = [](const Args& a) -> Results { return a.tensor(0); }, .doc = "Registered twice.")};
constexpr OpDef kNothing[] = {
    OP("test_registry_nothing(Tensor self) -> Tensor", .doc = "Neither text, kernel nor decomposition.")};
constexpr OpDef kNoLoops[] = {OP("test_registry_no_loops(Tensor self) -> Tensor", .types = float_types,
                                 .scalar = SCALAR(x + x),
                                 .doc = "A text of a file that does not ask for loops.")};
constexpr OpDef kBadSchema[] = {OP(
    "test_registry_bad(Tensor self -> Tensor",
    .decompose = [](const Args& a) -> Results { return a.tensor(0); })};

template <class E>
std::string message(std::span<const OpDef> ops) {
  try {
    register_ops(ops);
  } catch (const E& e) {
    return e.what();
  }
  return "nothing thrown";
}

TEST(Registry, DuplicatesIncompleteBlocksAndBadSchemasAreRefused) {
  const Op* before = find_op("add.Tensor");
  size_t count = all_ops().size();
  EXPECT_NE(message<ValueError>(kDuplicate).find("add.Tensor is registered already"), std::string::npos)
      << message<ValueError>(kDuplicate);
  EXPECT_NE(message<ValueError>(kNothing).find("test_registry_nothing: the block needs"), std::string::npos)
      << message<ValueError>(kNothing);
  EXPECT_NE(message<ValueError>(kBadSchema), "nothing thrown");
  EXPECT_NE(message<ValueError>(kNoLoops).find("define VESTA_OP_LOOPS before including vesta/op.h"),
            std::string::npos)
      << message<ValueError>(kNoLoops);
  EXPECT_EQ(find_op("add.Tensor"), before);
  EXPECT_EQ(all_ops().size(), count);
  EXPECT_EQ(find_op("test_registry_nothing"), nullptr);
}

}  // namespace
}  // namespace vesta
