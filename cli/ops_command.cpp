// `vesta ops`: the registered operators, one row a functional form. The columns are an interface for scripts.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "commands.h"
#include "core/registry.h"

namespace vesta::cli {
namespace {

struct Row {
  std::string name, overload, category, kernels, gradient, sharding, dtypes, schema;
};

// Categories as in docs/ops.tsv; a family file is one category or a part of one ("pointwise_unary", "reduce").
std::string category_of(std::string family) {
  static const std::pair<const char*, const char*> kRenamed[] = {{"view", "shape/view"},
                                                                 {"index", "index/gather/scatter"},
                                                                 {"reduce", "reduction"},
                                                                 {"sort", "sort/search"},
                                                                 {"foreach", "foreach/fused-opt"},
                                                                 {"optim", "foreach/fused-opt"},
                                                                 {"quantised", "quantised/scaled"},
                                                                 {"join", "shape/view"}};
  for (auto& [from, to] : kRenamed)
    if (family == from) return to;
  std::replace(family.begin(), family.end(), '_', '-');
  return family;
}

std::string dtypes_of(const OpDef& def) {
  std::string list;
  for (int t = 0; t < kNumDTypes; ++t)
    if (def.types.accepts(DType(t))) list += (list.empty() ? "" : ",") + std::string(dtype_name(DType(t)));
  return list;
}

std::string kernels_of(const Op& op) {
  std::string list;
  auto add = [&](const char* what) { list += (list.empty() ? "" : "+") + std::string(what); };
  if (op.def->scalar.classes) add("scalar");
  if (op.def->kernels.find(DeviceType::CPU)) add("cpu");
  if (op.def->decompose) add("decompose");
  if (list.empty()) add("view");
  return list;
}

std::vector<Row> rows() {
  std::vector<Row> list;
  for (const Op* op : all_ops()) {
    if (op->form != OpForm::Functional) continue;
    const OpDef& def = *op->def;
    const char* gradient = def.non_differentiable ? "none"
                           : def.vjp              ? "vjp"
                           : def.decompose        ? "decompose"
                                                  : "none";
    list.push_back({op->schema.name, op->schema.overload, category_of(op->family), kernels_of(*op), gradient,
                    def.shard.rule, dtypes_of(def), op->schema.str()});
  }
  std::sort(list.begin(), list.end(),
            [](auto& a, auto& b) { return std::tie(a.name, a.overload) < std::tie(b.name, b.overload); });
  return list;
}

void print_tsv(const std::vector<Row>& list) {
  std::puts("name\toverload\tcategory\tkernels\tgradient\tsharding\tdtypes");
  for (auto& r : list)
    std::printf("%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.name.c_str(), r.overload.c_str(), r.category.c_str(),
                r.kernels.c_str(), r.gradient.c_str(), r.sharding.c_str(), r.dtypes.c_str());
}

void print_json(const std::vector<Row>& list) {
  for (auto& r : list) {
    nlohmann::ordered_json j = {{"name", r.name},       {"overload", r.overload}, {"category", r.category},
                                {"kernels", r.kernels}, {"gradient", r.gradient}, {"sharding", r.sharding},
                                {"dtypes", r.dtypes},   {"schema", r.schema}};
    std::puts(j.dump().c_str());
  }
}

void print_text(const std::vector<Row>& list) {
  size_t names = 0;
  for (auto& r : list) {
    std::printf("%s\n    %s, %s, gradient %s, sharding %s\n", r.schema.c_str(), r.category.c_str(),
                r.kernels.c_str(), r.gradient.c_str(), r.sharding.c_str());
    names += &r == list.data() || r.name != (&r - 1)->name;
  }
  std::printf("%zu operators of %zu names\n", list.size(), names);
}

// Which of libtorch's operators are here, by category, from a table like docs/ops.tsv: Markdown, docs/parity.md. Only
// the public rows of each operator as such count, not its in-place and out forms, which have no rows of their own.
int print_parity(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "vesta ops: cannot read %s\n", path.c_str());
    return 1;
  }
  std::set<std::string> here;
  for (const Row& r : rows()) here.insert(r.overload.empty() ? r.name : r.name + "." + r.overload);
  struct Count {
    size_t all = 0, found = 0;
    std::string missing;
  };
  std::map<std::string, Count> categories;
  Count sum;
  std::string line;
  std::getline(file, line);  // the header: name, signature, category, ..., tier (the ninth)
  while (std::getline(file, line)) {
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
    if (fields.size() < 9 || fields[8] != "pub") continue;
    Count& c = categories[fields[2]];
    for (Count* count : {&c, &sum}) {
      ++count->all;
      count->found += here.count(fields[0]);
    }
    if (!here.count(fields[0])) c.missing += (c.missing.empty() ? "`" : ", `") + fields[0] + "`";
  }
  std::printf(
      "# Operators: libtorch and Vesta\n\nWritten by `vesta ops --parity docs/ops.tsv`; do not edit. Public "
      "overloads of "
      "PyTorch by category, how many of them\nVesta has, and which it has not.\n\n");
  std::printf("| category | overloads | here | missing |\n|---|---|---|---|\n");
  for (const auto& [name, c] : categories)
    std::printf("| %s | %zu | %zu | %s |\n", name.c_str(), c.all, c.found, c.missing.c_str());
  std::printf("| **all** | %zu | %zu | |\n", sum.all, sum.found);
  return 0;
}

}  // namespace

void add_ops(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("ops", "List the operators");
  auto tsv = std::make_shared<bool>(false), json = std::make_shared<bool>(false);
  auto* flag = command->add_flag(
      "--tsv", *tsv, "A table with tabs: name, overload, category, kernels, gradient, sharding, dtypes");
  command->add_flag("--json", *json, "A JSON object a line, with the schema")->excludes(flag);
  auto parity = std::make_shared<std::string>();
  command->add_option("--parity", *parity,
                      "A table like docs/ops.tsv: prints which of its rows are here, as Markdown");
  auto reference = std::make_shared<std::string>();
  command->add_option("--reference", *reference,
                      "A folder: writes a Markdown page for each group of operators there");
  command->callback([&action, tsv, json, parity, reference] {
    action = [tsv, json, parity, reference] {
      if (!reference->empty()) return write_reference(*reference);
      if (!parity->empty()) return print_parity(*parity);
      auto list = rows();
      if (*tsv)
        print_tsv(list);
      else if (*json)
        print_json(list);
      else
        print_text(list);
      return 0;
    };
  });
}

}  // namespace vesta::cli
