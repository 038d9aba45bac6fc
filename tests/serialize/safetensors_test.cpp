// safetensors: what is written is read back bit for bit, files of other writers are read, hostile files are refused with
// a message that says where, and no mutation of a good file crashes the parser (run under AddressSanitizer in debug).
#include "serialize/safetensors.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <vesta/error.h>
#include <vesta/safetensors.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "base/file.h"
#include "support/temp_folder.h"
#include "vesta/ops.h"
#include "vesta/sample_gen.h"

namespace vesta {
namespace {

namespace fs = std::filesystem;

class SafetensorsFiles : public test::FolderTest {};

// A file of this header text and so many bytes of data.
std::string file_of(const std::string& header, size_t data_bytes, char fill = 0) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data_bytes, fill);
}

std::span<const std::byte> bytes_of(const std::string& s) {
  return {reinterpret_cast<const std::byte*>(s.data()), s.size()};
}

// The message of parsing it, or "accepted".
std::string verdict(const std::string& file) {
  try {
    parse_safetensors_header(bytes_of(file), "x");
  } catch (const IoError& e) {
    return e.what();
  } catch (const NotImplementedError& e) {
    return e.what();
  }
  return "accepted";
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  Tensor p = a.contiguous(), q = b.contiguous();
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
         (a.numel() == 0 || std::memcmp(p.data_ptr(), q.data_ptr(), p.nbytes()) == 0);
}

TensorMap all_kinds(uint64_t seed) {
  TensorMap map;
  for (DType t :
       {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64, kComplex64,
        kUInt16, kUInt32, kUInt64, kFloat8_e4m3fn, kFloat8_e5m2, kFloat8_e8m0fnu, kFloat4_e2m1fn_x2}) {
    SampleGen gen(t, seed);
    map[std::string("odd/") + dtype_name(t)] = gen.t({3, 5});
    if (t != kFloat4_e2m1fn_x2) map[std::string("scalar/") + dtype_name(t)] = gen.t({});
    map[std::string("empty/") + dtype_name(t)] = gen.t({0, 7});
  }
  return map;
}

TEST_F(SafetensorsFiles, EveryDtypeAndShapeIsReadBackBitForBit) {
  TensorMap map = all_kinds(1);
  save_safetensors(path("a"), map, {{"step", "100"}, {"text", "ä \"quoted\" \n"}});
  Safetensors back = load_safetensors_file(path("a"));
  EXPECT_EQ(back.metadata, (MetadataMap{{"step", "100"}, {"text", "ä \"quoted\" \n"}}));
  ASSERT_EQ(back.tensors.size(), map.size());
  for (auto& [name, t] : map) {
    EXPECT_TRUE(same_bytes(t, back.tensors.at(name))) << name;
    EXPECT_TRUE(back.tensors.at(name).is_contiguous()) << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(back.tensors.at(name).data_ptr()) % element_size(t.dtype()), 0u)
        << name;
  }
  save_safetensors(path("b"), back.tensors, back.metadata);
  EXPECT_EQ(read_all(path("a")), read_all(path("b"))) << "equal maps give equal files";
}

TEST_F(SafetensorsFiles, ViewsAndTensorsThatRequireGradAreStoredByTheirElements) {
  SampleGen gen(kFloat32, 2);
  Tensor t = gen.t({4, 6});
  Tensor leaf = gen.t({3}).requires_grad_();
  save_safetensors(path("a"), {{"t", t.t()},
                               {"slice", t.slice(1, 1, 6, 2)},
                               {"wide", t.slice(0, 0, 1).expand({3, 6})},
                               {"leaf", leaf}});
  TensorMap back = load_safetensors(path("a"));
  EXPECT_TRUE(same_bytes(back.at("t"), t.t()));
  EXPECT_TRUE(same_bytes(back.at("slice"), t.slice(1, 1, 6, 2)));
  EXPECT_TRUE(same_bytes(back.at("wide"), t.slice(0, 0, 1).expand({3, 6})));
  EXPECT_TRUE(same_bytes(back.at("leaf"), leaf.detach()));
  EXPECT_FALSE(back.at("leaf").requires_grad());
}

TEST_F(SafetensorsFiles, LoadedTensorsOutliveTheMapAndWritesToThemDoNotReachTheFile) {
  SampleGen gen(kFloat32, 3);
  save_safetensors(path("a"), {{"x", gen.t({1000})}, {"y", gen.t({10})}});
  std::string before = read_all(path("a"));
  Tensor x = load_safetensors(path("a")).at("x");
  float first = x.data_ptr<float>()[0];
  x.data_ptr<float>()[0] = first + 1;
  x.add_(Scalar(1));
  EXPECT_EQ(x.data_ptr<float>()[0], first + 2);
  EXPECT_EQ(read_all(path("a")), before);
  // Saved over itself: the old file stays until the map ends.
  save_safetensors(path("a"), {{"x", x}});
  EXPECT_TRUE(same_bytes(load_safetensors(path("a")).at("x"), x));
}

TEST_F(SafetensorsFiles, AFileOfAnotherWriterWithUnalignedDataIsRead) {
  std::string file = file_of(
      R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"f":{"data_offsets":[1,9],"shape":[2],"dtype":"F32"}})",
      1, 7);
  float values[] = {1.5f, -2.0f};
  file.append(reinterpret_cast<const char*>(values), 8);
  write_file(path("a"), file);
  TensorMap map = load_safetensors(path("a"));
  EXPECT_EQ(map.at("b").data_ptr<uint8_t>()[0], 7);
  EXPECT_EQ(map.at("f").data_ptr<float>()[0], 1.5f);
  EXPECT_EQ(map.at("f").data_ptr<float>()[1], -2.0f);
}

TEST_F(SafetensorsFiles, WhatTheFormatCannotHoldIsRefusedAndNothingIsWritten) {
  SampleGen gen(kComplex128, 4), f(kFloat32, 4);
  auto message = [&](const TensorMap& map, const MetadataMap& metadata = {}) -> std::string {
    try {
      save_safetensors(path("a"), map, metadata);
    } catch (const ValueError& e) {
      return e.what();
    }
    return "nothing thrown";
  };
  EXPECT_NE(message({{"z", gen.t({2})}}).find("tensor 'z' has dtype complex128"), std::string::npos);
  EXPECT_NE(message({{"u", Tensor()}}).find("'u' is undefined"), std::string::npos);
  EXPECT_NE(message({{"__metadata__", f.t({2})}}).find("reserved"), std::string::npos);
  EXPECT_NE(message({{"\xff", f.t({2})}}).find("UTF-8"), std::string::npos);
  EXPECT_NE(message({}, {{"k", "\xff"}}).find("UTF-8"), std::string::npos);
  EXPECT_NE(message({{"m", empty({2}, Device(DeviceType::Meta))}}).find("'m' has no data"),
            std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(SafetensorsFiles, AWriteThatFailsLeavesTheOldFile) {
  SampleGen gen(kFloat32, 5);
  save_safetensors(path("a"), {{"x", gen.t({4})}});
  std::string before = read_all(path("a"));
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit small{4096, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(save_safetensors(path("a"), {{"x", gen.t({100000})}}), IoError);
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(read_all(path("a")), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1)
      << "no temporary file stays";
  EXPECT_THROW(save_safetensors(path("none/a"), {}), IoError);
  EXPECT_THROW(load_safetensors(path("none")), IoError);
}

TEST_F(SafetensorsFiles, ABoolThatIsNeitherZeroNorOneIsRefused) {
  write_file(path("a"), file_of(R"({"m":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2, 2));
  EXPECT_THROW(load_safetensors(path("a")), IoError);
}

TEST(SafetensorsHeaders, HostileHeadersAreRefusedWithTheReason) {
  struct Case {
    std::string file, reason;
  };
  auto one = [](const std::string& fields, size_t bytes) {
    return file_of("{\"a\":{" + fields + "}}", bytes);
  };
  std::string deep(200000, '[');
  const Case cases[] = {
      {"", "only 0"},
      {"1234567", "only 7"},
      {std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10), "claims 9223372036854775807 bytes"},
      {std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), "claims 18446744073709551615 bytes"},
      {std::string("\x10\0\0\0\0\0\0\0{}", 10), "only 2 follow"},
      {file_of("", 0), "does not start with '{'"},
      {file_of("[]", 0), "does not start with '{'"},
      {file_of("{", 0), "does not start with '{'"},
      {file_of("{\"a\"", 0), "not valid JSON"},
      {file_of("{} x", 0), "not valid JSON"},
      {file_of("{\"\xff\":{}}", 0), "not valid JSON"},
      {file_of("{\"a\":1}", 0), "a number in 'a'"},
      {file_of("{\"a\":null}", 0), "null in 'a'"},
      {file_of("{\"a\":{}}", 0), "lacks its dtype"},
      {file_of("{\"a\":" + deep, 0), "a list in 'a'"},
      {file_of("{\"__metadata__\":{\"k\":1}}", 0), "a number in __metadata__"},
      {file_of("{\"__metadata__\":{\"k\":{}}}", 0), "an object in __metadata__"},
      {file_of("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0), "'k' appears twice"},
      {file_of("{\"__metadata__\":{},\"__metadata__\":{}}", 0), "__metadata__ appears twice"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"dtype":"F32")", 4), "appears twice"},
      {one(R"("dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4])", 4), "appears twice"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"other":1)", 4), "unknown field 'other'"},
      {one(R"("dtype":"F33","shape":[1],"data_offsets":[0,4])", 4), "unknown dtype 'F33'"},
      {one(R"("dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3])", 3), "F6_E2M3, which is not supported"},
      {one(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])", 2), "needs an even last size"},
      {one(R"("dtype":"F4","shape":[],"data_offsets":[0,1])", 1), "needs an even last size"},
      {one(R"("dtype":4,"shape":[1],"data_offsets":[0,4])", 4), "a number in 'a'"},
      {one(R"("dtype":"F32","shape":"1","data_offsets":[0,4])", 4), "text in 'a'"},
      {one(R"("dtype":"F32","shape":[[1]],"data_offsets":[0,4])", 4), "a list in 'a'"},
      {one(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", 4), "got -1"},
      {one(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])", 4), "got 1.0"},
      {one(R"("dtype":"F32","shape":[1e400],"data_offsets":[0,4])", 4), "not valid JSON"},
      {one(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4])", 4),
       "size of 18446744073709551615"},
      {one(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])", 0),
       "do not fit into 63 bits"},
      {one(R"("dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4])", 4),
       "do not fit into 63 bits"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0])", 4), "expected 2 data_offsets, got 1"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,4])", 4), "expected 2 data_offsets, got 3"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])", 4), "are not inside"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])", 3), "are not inside the 3 bytes"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,0])", 4), "are not inside"},
      {one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", 4), "need 8 bytes, its data_offsets give 4"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])", 8),
       "no tensor owns the 4 bytes of data before"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])", 8), "no tensor owns the last 4 bytes"},
      {file_of(
           R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
           3),
       "overlap"},
      {file_of(
           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
           2),
       "'a' appears twice"},
  };
  for (auto& c : cases) {
    std::string got = verdict(c.file);
    EXPECT_NE(got.find(c.reason), std::string::npos) << "wanted: " << c.reason << "\ngot: " << got;
    EXPECT_EQ(got.find("load_safetensors 'x': "), 0u) << got;
  }
  EXPECT_EQ(verdict(file_of("{}", 0)), "accepted");
  EXPECT_EQ(verdict(file_of("{}      ", 0)), "accepted");
}

// Random edits of a good file. Whatever is accepted must be readable to the last byte, inside the file.
void fuzz(int mutations, uint64_t seed) {
  TensorMap map = all_kinds(seed);
  std::vector<SafetensorsEntry> entries;
  for (auto& [name, t] : map) entries.push_back({name, t.dtype(), t.sizes().vec(), 0, 0});
  std::string good = print_safetensors_header(entries, {{"key", "value"}, {"k2", "\\u00e4\n"}});
  for (auto& e : entries) {
    Tensor t = map.at(e.name).contiguous();
    if (t.nbytes()) good.append(static_cast<const char*>(t.data_ptr()), t.nbytes());
  }
  ASSERT_EQ(verdict(good), "accepted");
  const char* const tokens[] = {"\"",
                                "{",
                                "}",
                                "[",
                                "]",
                                ",",
                                ":",
                                "-1",
                                "0",
                                "18446744073709551615",
                                "9223372036854775807",
                                "1e9",
                                "null",
                                "\"dtype\"",
                                "\"F64\"",
                                "\"shape\"",
                                "\"data_offsets\"",
                                "\"__metadata__\"",
                                "\\u0000",
                                "\xff"};
  std::mt19937_64 random(seed);
  auto below = [&](size_t n) { return size_t(random() % std::max<size_t>(1, n)); };
  int accepted = 0;
  for (int i = 0; i < mutations; ++i) {
    std::string file = good;
    size_t header = 8 + size_t(uint8_t(good[0]) | uint8_t(good[1]) << 8);
    for (int edits = 1 + int(below(4)); edits > 0; --edits) {
      size_t at = below(random() % 8 ? header : file.size());
      if (at >= file.size()) continue;
      switch (below(6)) {
        case 0:
          file[at] = char(random());
          break;
        case 1:
          file[at] = char(file[at] ^ (1 << below(8)));
          break;
        case 2:
          file.resize(at);
          break;
        case 3:
          file.erase(at, 1 + below(8));
          break;
        case 4:
          file.insert(at, tokens[below(std::size(tokens))]);
          break;
        default: {  // a token over old text, with the length unchanged: the JSON stays nearly valid
          std::string token = tokens[below(std::size(tokens))];
          for (size_t k = 0; k < token.size() && at + k < file.size(); ++k) file[at + k] = token[k];
        }
      }
    }
    if (random() % 2 &&
        file.size() >= 8) {  // often with a length that fits the edited text, so that JSON is reached
      uint64_t length = uint64_t(header - 8 + file.size() - good.size());
      std::memcpy(file.data(), &length, 8);
    }
    // A buffer of its own size, so that one byte too far is seen by the sanitizer.
    std::vector<std::byte> exact(bytes_of(file).begin(), bytes_of(file).end());
    try {
      SafetensorsHeader h = parse_safetensors_header(exact, "fuzz");
      ++accepted;
      unsigned sum = 0;
      for (auto& e : h.entries)
        for (uint64_t b = e.begin; b < e.end; ++b) sum += unsigned(exact.at(size_t(b)));
      ASSERT_LE(sum, 255u * exact.size());
    } catch (const IoError&) {
    } catch (const NotImplementedError&) {
    }
  }
  testing::Test::RecordProperty("accepted", accepted);
  EXPECT_GT(accepted, 0) << "edits of data and of names keep some files valid";
  EXPECT_LT(accepted, mutations / 2);
}

TEST(SafetensorsHeaders, TenThousandMutationsOfAFileNeverCrashTheParser) { fuzz(10000, 20240611); }
TEST(NightlySafetensorsHeaders, AMillionMutationsOfAFileNeverCrashTheParser) { fuzz(1000000, 7); }

}  // namespace
}  // namespace vesta
