// Recorded PyTorch results: all cases of registered ops pass or are listed in exceptions.txt. And the checker itself: it
// sees wrong values, dtypes, sizes, gradients and missing errors.
#include "golden/golden.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <vesta/error.h>
#include <vesta/safetensors.h>

#include <filesystem>

#include "base/config.h"
#include "base/file.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

namespace fs = std::filesystem;

TEST(Golden, EveryRecordedCaseOfARegisteredOpPassesOrIsListed) {
  const std::string& folder = config().golden_dir;
  if (folder.empty())
    GTEST_SKIP() << "VESTA_GOLDEN_DIR is unset: there are no recorded results to compare with";
  golden::Exceptions exceptions(read_all("golden/exceptions.txt"));
  golden::Summary total;
  golden::CheckOptions options;
  int shown = 0;
  options.after = [&](const golden::CaseResult& r) {
    if (r.outcome == golden::Outcome::Failed && ++shown <= 40) ADD_FAILURE() << r.id << ": " << r.message;
  };
  std::vector<std::string> files;
  for (auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  ASSERT_FALSE(files.empty()) << folder;
  for (auto& file : files) golden::check_file(file, options, exceptions, total);
  EXPECT_EQ(total.failed, 0);
  EXPECT_GT(total.passed, 0);
  for (auto& d : exceptions.list)
    EXPECT_GT(d.failed, 0) << "exception " << d.pattern << " is no longer needed";
  std::printf("%d cases: %d passed, %d accepted, %d of ops that are not registered\n", total.cases,
              total.passed, total.accepted, total.not_registered);
}

class Checker : public test::FolderTest {
 protected:
  void SetUp() override {
    Tensor a = arange(6, kFloat32), ints = arange(4, kInt64);
    save_safetensors(folder_ + "/x.safetensors",
                     {{"a", a},
                      {"twice", a * 2},
                      {"ones", ones({6})},
                      {"twos", ones({6}) * 2},
                      {"near", a * 2 + 1e-3},
                      {"double", (a * 2).to(kFloat64)},
                      {"long", arange(7, kFloat32) * 2},
                      {"ints", ints},
                      {"square", (a.slice(0, 0, 4) * 2).view({2, 2}).t().contiguous()},
                      {"z", a.view({3, 2})},
                      {"zz", (a * 2).view({3, 2})},
                      {"nan", full({6}, NAN)}});
  }
  // The messages of the cases of these lines; "" where one passed.
  std::vector<std::string> check(const std::vector<std::string>& lines, const std::string& exceptions = "") {
    std::string text;
    for (auto& line : lines) text += line + "\n";
    write_file(folder_ + "/x.jsonl", text);
    golden::Exceptions accepted(exceptions);
    summary_ = {};
    golden::CheckOptions options;
    std::vector<std::string> messages;
    options.after = [&](const golden::CaseResult& r) { messages.push_back(r.message); };
    golden::check_file(folder_ + "/x.jsonl", options, accepted, summary_);
    return messages;
  }
  static std::string add(const std::string& out, const std::string& more = "",
                         const std::string& args = R"({"t":"a"},{"t":"a"})") {
    return R"({"id":"add.Tensor/0","op":"add","overload":"Tensor","args":[)" + args +
           R"(],"kwargs":{},"out":[)" + out + R"(],"tol":{"rtol":1e-6,"atol":1e-6},"source":"made")" + more +
           "}";
  }
  golden::Summary summary_;
};

TEST_F(Checker, PassesWhatIsRight) {
  auto messages = check({
      add(R"({"t":"twice"})"),
      add(R"({"skip":true})"),
      add(R"({"t":"twice"})", R"(,"grad":{"cotangent":["ones"],"wrt":[0,1],"grads":["ones","ones"]})"),
      add(R"({"t":"square"})", "",
          R"({"t":"a","sizes":[2,2],"strides":[1,2],"offset":0},{"t":"a","sizes":[2,2],"strides":[1,2]})"),
      add(R"({"t":"zz","complex":true})", "", R"({"t":"z","complex":true},{"t":"z","complex":true})"),
      add(R"({"t":"nan"})", "", R"({"t":"nan"},{"t":"a"})"),
      R"({"id":"add_","op":"add_","overload":"Tensor","args":[{"t":"a"},{"t":"a"}],"kwargs":{"alpha":{"i":1}},"out":[{"t":"twice"}],"tol":{"rtol":0,"atol":0}})",
      R"({"id":"error","op":"add","overload":"Tensor","args":[{"t":"a"},{"t":"ints"}],"kwargs":{},"error":"sizes"})",
  });
  for (auto& m : messages) EXPECT_EQ(m, "");
  EXPECT_EQ(summary_.passed, 8);
}

TEST_F(Checker, SeesWhatIsWrong) {
  auto messages = check({
      add(R"({"t":"near"})"),
      add(R"({"t":"double"})"),
      add(R"({"t":"long"})"),
      add(R"({"t":"nan"})"),
      add(R"({"t":"twice"},{"t":"twice"})"),
      add(R"({"t":"twice"})", R"(,"grad":{"cotangent":["ones"],"wrt":[0],"grads":["twos"]})"),
      add(R"({"t":"twice"})", R"(,"grad":{"cotangent":["ones"],"wrt":[0],"grads":[null]})"),
      R"({"id":"no error","op":"add","overload":"Tensor","args":[{"t":"a"},{"t":"a"}],"kwargs":{},"error":"none comes"})",
      R"({"id":"error","op":"add","overload":"Tensor","args":[{"t":"a"},{"t":"ints"}],"kwargs":{},"out":[{"t":"a"}],"tol":{"rtol":0,"atol":0}})",
  });
  const char* wanted[] = {"6 of 6 elements of float32[6] differ",
                          "wanted float64[6], got float32[6]",
                          "wanted float32[7], got float32[6]",
                          "wanted nan",
                          "wanted 2 outputs, got 1",
                          "gradient of tensor 0: 6 of 6",
                          "gradient of tensor 0: 6 of 6",
                          "wanted an error (none comes)",
                          "threw: add.Tensor"};
  ASSERT_EQ(messages.size(), std::size(wanted));
  for (size_t i = 0; i < messages.size(); ++i)
    EXPECT_NE(messages[i].find(wanted[i]), std::string::npos) << "case " << i << ": " << messages[i];
  EXPECT_EQ(summary_.failed, 9);
}

TEST_F(Checker, AcceptsListedDifferencesWithAReason) {
  check({add(R"({"t":"near"})")}, "# comment\nadd.*/0  meant\n");
  EXPECT_EQ(summary_.accepted, 1);
  EXPECT_EQ(summary_.failed, 0);
  EXPECT_THROW(golden::Exceptions("add.Tensor/0\n"), ValueError) << "a reason is wanted";
}

TEST_F(Checker, UnknownOpsAreCountedAndMalformedFilesAreErrors) {
  check({R"({"id":"n","op":"no_such","overload":"default","args":[],"kwargs":{},"out":[]})"});
  EXPECT_EQ(summary_.not_registered, 1);
  EXPECT_EQ(summary_.missing_ops.at("no_such"), 1);
  EXPECT_THROW(check({"{"}), IoError);
  EXPECT_THROW(check({R"({"id":"x"})"}), IoError);
  EXPECT_THROW(check({add(R"({"t":"absent"})")}), IoError);
  EXPECT_THROW(
      check({add(R"({"t":"a"})", "", R"({"t":"a","sizes":[4],"strides":[2],"offset":0},{"t":"a"})")}),
      IoError)
      << "a view outside of its storage";
}

TEST(GoldenPatterns, StarsAndQuestionMarksMatch) {
  EXPECT_TRUE(golden::matches("add.*/1?", "add.Tensor/17"));
  EXPECT_TRUE(golden::matches("*", ""));
  EXPECT_FALSE(golden::matches("add.*/1?", "add.Tensor/1"));
  EXPECT_FALSE(golden::matches("add", "add.Tensor"));
  EXPECT_TRUE(golden::matches("*a*b*", "xaxxbx"));
}

}  // namespace
}  // namespace vesta
