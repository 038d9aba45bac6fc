// Every parser of files on mutated files: a typed error, or values that lie inside of their memory. The debug preset runs
// this under AddressSanitizer and UndefinedBehaviorSanitizer. Memory for tensors stays within a small multiple of the file.
#include "file_testing.h"
#include "runtime/cpu/allocator.h"
#include "serialize/npy_header.h"
#include "serialize/torch_values.h"
#include "serialize/zip.h"
#include "vesta/sample_gen.h"
#include "vesta/torch_file.h"

namespace vesta {
namespace {

// More than any of the small files may cost: an entry may claim 1,032 times its bytes when deflated.
constexpr uint64_t kMemoryLimit = 64 << 20;

struct Outcome {
  int accepted = 0, refused = 0;
};

// `parse` reads a mutant. Anything but a typed error and a result fails the test.
template <class Parse>
Outcome run(const std::string& good, int mutations, uint64_t seed, Parse parse) {
  Outcome outcome;
  EXPECT_NO_THROW(parse(good));
  Mutator mutate(seed);
  cpu::reset_peak_memory_stats();
  const uint64_t before = cpu::memory_stats().allocated;
  for (int i = 0; i < mutations; ++i) {
    const std::string file = mutate(good);
    try {
      parse(file);
      ++outcome.accepted;
    } catch (const Error& e) {
      ++outcome.refused;
      EXPECT_TRUE(e.kind() == ErrorKind::Io || e.kind() == ErrorKind::NotImplemented) << e.what();
      EXPECT_LT(std::strlen(e.what()), 2000u);
    }
  }
  EXPECT_LT(cpu::memory_stats().peak_allocated, before + kMemoryLimit);
  testing::Test::RecordProperty("seed", std::to_string(seed));
  testing::Test::RecordProperty("accepted", outcome.accepted);
  EXPECT_GT(outcome.refused, 0);
  return outcome;
}

size_t touch_all(const IValue& value) {
  size_t sum = 0;
  for (auto& item : named_tensors(value)) sum += touch(*item);
  return sum + value.str().size();
}

std::string npy_file(uint64_t seed) {
  SampleGen gen(kFloat32, seed);
  const NpyContent c = npy_content(gen.t({3, 4}).t(), "x");
  return c.header + std::string(static_cast<const char*>(c.elements.data_ptr()), c.elements.nbytes());
}

IValue nested(uint64_t seed) {
  SampleGen f(kFloat32, seed), z(kComplex64, seed), b(kBool, seed);
  const Tensor base = f.t({4, 5});
  return GenericDict{
      {"a", base},
      {"b", base.t()},
      {"c", base.select(0, 2)},
      {"z", z.t({3}).conj()},
      {"m", b.t({3, 2})},
      {"e", f.t({0, 3})},
      {"leaf", f.t({2}).requires_grad_()},
      {"n", IValue::list({1, -2.5, "text", true, nullptr, int64_t{1} << 40, kInt64, Device("cpu")})},
      {"t", IValue::tuple({base, std::complex<double>(1, 2), GenericDict{{7, "seven"}}})}};
}

std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries,
                   ZipWriter::Method method) {
  MemorySink<std::string> sink;
  ZipWriter zip(sink);
  for (auto& [name, content] : entries) zip.add(name, content.data(), content.size(), method);
  zip.finish();
  return sink.content;
}

void fuzz_npy(int mutations, uint64_t seed) {
  const Outcome o = run(npy_file(seed), mutations, seed,
                        [](const std::string& file) { return touch(npy_tensor(region_of(file), "npy")); });
  EXPECT_GT(o.accepted, 0) << "edits of elements leave a right file";
}

void fuzz_zip(int mutations, uint64_t seed) {
  for (bool zip64 : {false, true}) {
    MemorySink<std::string> sink;
    ZipWriter zip(sink, zip64);
    zip.add("stored", std::string(100, 'a'));
    zip.add("deflated", std::string(500, 'b').data(), 500, ZipWriter::Method::Deflated);
    zip.add("empty", "");
    zip.finish();
    for (bool check : {false, true})
      run(sink.content, mutations / 4, seed + check, [&](const std::string& file) {
        const ZipReader reader(region_of(file), "zip");
        size_t sum = 0;
        for (auto& e : reader.entries()) {
          const ByteRegion content = reader.read(e, check);
          for (std::byte b : content.bytes()) sum += size_t(b);
        }
        return sum;
      });
  }
}

// The pickle alone is edited; the archive around it is whole, so that checksums do not stop the mutant.
void fuzz_pickle(int mutations, uint64_t seed) {
  const std::vector<char> whole = pickle_save(nested(seed));
  const ZipReader good(copy_region(whole.data(), whole.size()), "good");
  std::vector<std::pair<std::string, std::string>> entries;
  for (auto& e : good.entries()) entries.emplace_back(e.name, good.read(e, true).text());
  ASSERT_EQ(entries[0].first, "archive/data.pkl");
  const std::string pickle = entries[0].second;
  const Outcome o = run(pickle, mutations, seed, [&](const std::string& mutant) {
    entries[0].second = mutant;
    return touch_all(read_torch_file(region_of(zip_of(entries, ZipWriter::Method::Stored)), "pickle", true));
  });
  EXPECT_GT(o.accepted, 0) << "edits of numbers leave a right file";
}

// The whole archive is edited and checksums are not compared.
void fuzz_checkpoint(int mutations, uint64_t seed) {
  const std::vector<char> good = pickle_save(nested(seed));
  run(std::string(good.begin(), good.end()), mutations, seed, [](const std::string& file) {
    return touch_all(read_torch_file(region_of(file), "checkpoint", false));
  });
}

void fuzz_stream(int mutations, uint64_t seed) {
  const auto text = [](const std::string& t) { return raw("X") + char(t.size()) + raw("\0\0\0") + t; };
  const auto tensor = [&](const std::string& key, const std::string& sizes, const std::string& strides) {
    return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" + text(key) +
           text("cpu") + raw("K\x06NtQK\x00") + sizes + strides + "\x89" + "ccollections\nOrderedDict\n)RtR";
  };
  std::string good = raw("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.");
  good += "\x80\x02}" + text("little_endian") + "\x88s.\x80\x02";
  good += tensor("a", raw("K\x02K\x03\x86"), raw("K\x03K\x01\x86")) +
          tensor("b", raw("K\x06\x85"), raw("K\x01\x85")) + "\x86.\x80\x02](" + text("a") + text("b") + "e.";
  for (int i = 0; i < 2; ++i) good += raw("\x06\0\0\0\0\0\0\0") + std::string(24, char(i + 1));
  run(good, mutations, seed,
      [](const std::string& file) { return touch_all(read_torch_file(region_of(file), "stream", true)); });
}

TEST(FileFuzz, MutatedNpyFilesAreReadOrRefused) { fuzz_npy(20000, 1); }
TEST(FileFuzz, MutatedZipArchivesAreReadOrRefused) { fuzz_zip(20000, 2); }
TEST(FileFuzz, MutatedPicklesAreReadOrRefused) { fuzz_pickle(20000, 3); }
TEST(FileFuzz, MutatedCheckpointsAreReadOrRefused) { fuzz_checkpoint(10000, 4); }
TEST(FileFuzz, MutatedStreamsAreReadOrRefused) { fuzz_stream(20000, 5); }
TEST(NightlyFileFuzz, AMillionMutantsAreReadOrRefused) {
  fuzz_npy(200000, 11);
  fuzz_zip(200000, 12);
  fuzz_pickle(200000, 13);
  fuzz_checkpoint(200000, 14);
  fuzz_stream(200000, 15);
}

// 2 MB of opcodes that make a value each cost a bounded number of bytes a value, and no recursion.
TEST(FileFuzz, PicklesOfNothingButValuesOrMarksAreRefusedCheaply) {
  for (const std::string& op :
       {std::string("]"), std::string("}"), std::string("N"), std::string("("), raw("K\1\x85")}) {
    std::string pickle = "\x80\x02";
    while (pickle.size() < (2 << 20)) pickle += op;
    const std::string file = zip_of({{"m/data.pkl", pickle}}, ZipWriter::Method::Deflated);
    EXPECT_THROW(read_torch_file(region_of(file), "x", true), IoError) << "it does not end";
  }
  std::string nest = "\x80\x02N";
  nest.append(2 << 20, '\x85');
  nest += '.';
  EXPECT_THROW(
      read_torch_file(region_of(zip_of({{"m/data.pkl", nest}}, ZipWriter::Method::Deflated)), "x", true),
      IoError);
}

}  // namespace
}  // namespace vesta
