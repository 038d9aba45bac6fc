// .npy and .npz: files written byte by byte here, and by our writer, are read back; what Vesta has not got is refused by
// name; hostile headers are refused with the reason.
#include <signal.h>
#include <sys/resource.h>

#include "base/file.h"
#include "file_testing.h"
#include "serialize/npy_header.h"
#include "serialize/zip.h"
#include "vesta/npy.h"
#include "vesta/sample_gen.h"

namespace vesta {
namespace {

constexpr DType kNumpyTypes[] = {kBool,    kUInt8,   kInt8,      kInt16,      kInt32,  kInt64,  kFloat16,
                                 kFloat32, kFloat64, kComplex64, kComplex128, kUInt16, kUInt32, kUInt64};

// A .npy file of any version around this header text.
std::string npy(const std::string& header, const std::string& elements, int version = 1) {
  std::string out = raw("\x93NUMPY") + char(version) + '\0';
  const uint32_t length = uint32_t(header.size());
  out.append(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
  return out + header + elements;
}
std::string described(const std::string& descr, const std::string& shape, const char* fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}
Tensor parse(const std::string& file) { return npy_tensor(region_of(file), "load_npy 'x'"); }

class NpyFiles : public FileTest {};

TEST_F(NpyFiles, EveryTypeShapeAndStrideIsReadBackBitForBit) {
  const uint64_t seed = 20261130;
  RecordProperty("seed", int(seed));
  for (DType dtype : kNumpyTypes) {
    SampleGen gen(dtype, seed);
    const Tensor base = gen.t({4, 6, 5});
    const Tensor cases[] = {gen.t({}),
                            gen.t({1}),
                            gen.t({7}),
                            gen.t({0}),
                            gen.t({3, 0, 2}),
                            base,
                            base.permute({2, 1, 0}),
                            base.permute({1, 0, 2}),
                            base.slice(1, 1, 6, 2),
                            base.select(0, 2),
                            base.slice(0, 0, 1).expand({3, 6, 5})};
    for (const Tensor& t : cases) {
      save_npy(path("a.npy"), t);
      const Tensor back = load_npy(path("a.npy"));
      EXPECT_TRUE(same_elements(t, back)) << dtype_name(dtype) << " " << t.dim();
      const std::string first = read_all(path("a.npy"));
      EXPECT_EQ((first.size() - t.nbytes()) % 64, 0u) << "NumPy aligns the elements";
      save_npy(path("b.npy"), back);
      EXPECT_EQ(first, read_all(path("b.npy")));
    }
  }
}

TEST_F(NpyFiles, TheWriterGivesTheBytesThatNumPyGives) {
  // numpy.save of arange(6, dtype='<f4').reshape(2, 3).
  const float values[] = {0, 1, 2, 3, 4, 5};
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header.append(128 - 10 - header.size() - 1, ' ');
  save_npy(path("a.npy"), from_blob(const_cast<float*>(values), {2, 3}, TensorOptions(kFloat32)));
  EXPECT_EQ(read_all(path("a.npy")),
            npy(header + "\n", std::string(reinterpret_cast<const char*>(values), sizeof values)));
}

TEST_F(NpyFiles, BothByteOrdersAndEveryVersionGiveTheSameNumbers) {
  const std::string big = raw("\x3f\xc0\x00\x00\xc0\x00\x00\x00"),
                    little = raw("\x00\x00\xc0\x3f\x00\x00\x00\xc0");
  for (int version : {1, 2, 3})
    for (auto& file :
         {npy(described(">f4", "(2,)"), big, version), npy(described("<f4", "(2,)"), little, version),
          npy(described("=f4", "(2,)"), little, version)}) {
      const Tensor t = parse(file);
      EXPECT_EQ(t.data_ptr<float>()[0], 1.5f);
      EXPECT_EQ(t.data_ptr<float>()[1], -2.0f);
    }
  // A complex number is turned around by its halves: 1 + 2i.
  const Tensor z = parse(npy(described(">c8", "()"), raw("\x3f\x80\x00\x00\x40\x00\x00\x00")));
  EXPECT_EQ(z.dim(), 0);
  EXPECT_EQ(*z.data_ptr<std::complex<float>>(), std::complex<float>(1, 2));
  EXPECT_EQ(parse(npy(described(">i2", "(1,)"), raw("\x01\x02"))).data_ptr<int16_t>()[0], 0x102);
  EXPECT_EQ(parse(npy(described("|i1", "(1,)"), raw("\xff"))).data_ptr<int8_t>()[0], -1);
}

TEST_F(NpyFiles, FortranOrderBecomesStrides) {
  const Tensor t = parse(npy(described("|u1", "(2, 3)", "True"), raw("\1\2\3\4\5\6")));
  EXPECT_EQ(t.strides().vec(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(t.contiguous().data_ptr<uint8_t>()[1], 3);  // [[1, 3, 5], [2, 4, 6]]
  EXPECT_EQ(t.contiguous().data_ptr<uint8_t>()[3], 2);
}

TEST_F(NpyFiles, HeadersAsOtherProgramsWriteThemAreRead) {
  EXPECT_EQ(parse(npy("{\"shape\":(2L,),\"fortran_order\":False,\"descr\":\"|b1\"}", raw("\0\1"))).numel(),
            2);
  EXPECT_EQ(
      parse(npy(" { 'descr' : '<i8' ,\n'fortran_order' : True , 'shape' : ( ) } ", std::string(8, '\1')))
          .dim(),
      0);
  EXPECT_EQ(parse(npy(described("<f8", "(0, 3)"), "")).size(1), 3);
}

TEST_F(NpyFiles, LoadedTensorsOutliveTheMapAndWritesDoNotReachTheFile) {
  SampleGen gen(kFloat64, 3);
  save_npy(path("a.npy"), gen.t({1000}));
  const std::string before = read_all(path("a.npy"));
  Tensor x = load_npy(path("a.npy"));
  const double first = x.data_ptr<double>()[0];
  x.add_(Scalar(1));
  EXPECT_EQ(x.data_ptr<double>()[0], first + 1);
  EXPECT_EQ(read_all(path("a.npy")), before);
}

TEST_F(NpyFiles, WhatEitherSideHasNotGotIsRefusedByName) {
  const auto refused = [](const std::string& descr) {
    return message_as<NotImplementedError>([&] { parse(npy(described(descr, "(1,)"), std::string(16, 0))); });
  };
  EXPECT_SAYS(refused("<f16"), "long double");
  EXPECT_SAYS(refused("<c32"), "complex long double");
  EXPECT_SAYS(refused("|O"), "Python objects, which are never loaded");
  EXPECT_SAYS(refused("<U3"), "text");
  EXPECT_SAYS(refused("|S5"), "text");
  EXPECT_SAYS(refused("<M8[D]"), "dates");
  EXPECT_SAYS(refused("|V2"), "raw bytes");
  EXPECT_SAYS(
      message_as<NotImplementedError>([] {
        parse(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", std::string(4, 0)));
      }),
      "holds records");
  EXPECT_SAYS(message_as<NotImplementedError>([] { parse(npy(described("<f4", "(1,)"), "1234", 4)); }),
              "version 4.0");
  SampleGen gen(kBFloat16, 1);
  EXPECT_SAYS(message_as<ValueError>([&] { save_npy(path("a"), gen.t({2})); }),
              "no type bfloat16; convert to float32");
  EXPECT_SAYS(message_as<ValueError>([&] { save_npy(path("a"), Tensor()); }), "undefined");
  EXPECT_SAYS(message_as<ValueError>([&] { save_npy(path("a"), empty({2}, Device(DeviceType::Meta))); }),
              "no data");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST(NpyHeaders, HostileHeadersAreRefusedWithTheReason) {
  struct Case {
    std::string file, reason;
  };
  const std::string long_shape = "(" + std::string(200, '1') + ",)";
  std::string many;
  for (int i = 0; i < 65; ++i) many += "1,";
  const Case cases[] = {
      {"", "magic"},
      {raw("\x93NUMPY\x01\x00"), "magic"},
      {raw("\x93NUMPX\x01\x00\x00\x00"), "magic"},
      {raw("\x93NUMPY\x02\x00\x00\x00"), "end inside the header"},
      {raw("\x93NUMPY\x01\x00\xff\xff{}"), "claims 65535 bytes, but only 2 follow"},
      {raw("\x93NUMPY\x03\x00\xff\xff\xff\xff{}"), "claims 4294967295 bytes, at most"},
      {npy("", ""), "expected '{'"},
      {npy("{}", ""), "lacks descr"},
      {npy("{'descr': '<f4'", ""), "expected '}'"},
      {npy("{'descr': '<f4", ""), "does not end"},
      {npy("{'descr': __import__('os')", ""), "expected quoted text"},
      {npy("{'descr': '<f4', 'descr': '<f4'}", ""), "twice"},
      {npy("{'other': 1}", ""), "unknown key 'other'"},
      {npy(described("<f4", "(1,)") + "x", "1234"), "goes on after its dict"},
      {npy("{'descr': '<f4', 'fortran_order': 1, 'shape': ()}", "1234"), "expected True or False"},
      {npy(described("<f4", "1"), "1234"), "expected '('"},
      {npy(described("<f4", "(1)"), "1234"), "expected a tuple"},
      {npy(described("<f4", "(-1,)"), ""), "expected a size"},
      {npy(described("<f4", "(1 2)"), ""), "expected ','"},
      {npy(described("<f4", "(1.5,)"), ""), "expected ','"},
      {npy(described("<f4", long_shape), ""), "does not fit into 63 bits"},
      {npy(described("<f4", "(9223372036854775807,)"), ""), "do not fit into 63 bits"},
      {npy(described("<f4", "(4294967296, 4294967296)"), ""), "do not fit into 63 bits"},
      {npy(described("<f4", "(0, 9223372036854775807, 9223372036854775807)"), ""), "do not fit into 63 bits"},
      {npy(described("<f4", "(" + many + ")"), "1234"), "more than 64 dims"},
      {npy(described("<f4", "(2,)"), "1234"), "needs 8 bytes, but only 4 follow"},
      {npy(described("<f4", "(1,)"), "12345678"), "4 bytes follow the array"},
      {npy(described("f4", "(1,)"), "1234"), "lacks its byte order"},
      {npy(described("<x4", "(1,)"), "1234"), "unknown type '<x4'"},
      {npy(described("<f", "(1,)"), "1234"), "'<f' (long double)"},
      {npy(described("", "(1,)"), "1234"), "unknown type ''"},
      {npy(described("|b1", "(2,)"), raw("\1\2")), "element 1 of the bool array is 2"},
  };
  for (auto& c : cases) {
    const std::string got = message_of([&] { parse(c.file); });
    EXPECT_SAYS(got, c.reason);
    EXPECT_EQ(got.find("load_npy 'x': "), 0u) << got;
  }
}

class NpzFiles : public FileTest {};

TEST_F(NpzFiles, StoredAndDeflatedArchivesAreReadBackAndEqualMapsGiveEqualFiles) {
  const uint64_t seed = 4;
  std::map<std::string, Tensor> map;
  for (DType dtype : kNumpyTypes) {
    SampleGen gen(dtype, seed);
    map.emplace(dtype_name(dtype), gen.t({5, 3}));
    map.emplace(std::string("deep/") + dtype_name(dtype) + " ä", gen.t({3, 4}).t());
  }
  map.emplace("empty", empty({0, 2}, TensorOptions(kFloat32)));
  map.emplace("large", zeros({300, 300}, TensorOptions(kFloat64)));
  for (bool compressed : {false, true}) {
    save_npz(path("a.npz"), map, compressed);
    const auto back = load_npz(path("a.npz"));
    ASSERT_EQ(back.size(), map.size());
    for (auto& [name, t] : map) EXPECT_TRUE(same_elements(t, back.at(name))) << name;
    save_npz(path("b.npz"), back, compressed);
    EXPECT_EQ(read_all(path("a.npz")), read_all(path("b.npz")));
    EXPECT_EQ(std::filesystem::file_size(path("a.npz")) > 300 * 300 * 8, !compressed);
  }
  save_npz(path("none.npz"), {});
  EXPECT_TRUE(load_npz(path("none.npz")).empty());
}

TEST_F(NpzFiles, StoredArraysAreNotCopied) {
  save_npz(path("a.npz"), {{"x", ones({4096}, TensorOptions(kFloat64))}});
  const Tensor x = load_npz(path("a.npz")).at("x");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(x.data_ptr()) % 64, 0u);
  EXPECT_EQ(x.data_ptr<double>()[4095], 1.0);
}

TEST_F(NpzFiles, DamagedAndForeignEntriesAreRefused) {
  save_npz(path("a.npz"), {{"x", ones({4}, TensorOptions(kFloat32))}});
  std::string file = read_all(path("a.npz"));
  file[file.find("PK\x01\x02") - 1] ^= 1;  // the last byte of the elements
  write_file(path("b.npz"), file);
  EXPECT_SAYS(message_as<IoError>([&] { load_npz(path("b.npz")); }), "checksum of entry 'x.npy'");
  {
    FileSink sink(path("c.npz"));
    ZipWriter zip(sink);
    zip.add("readme.txt", "hello");
    zip.finish();
    sink.commit();
  }
  EXPECT_SAYS(message_as<IoError>([&] { load_npz(path("c.npz")); }), "entry 'readme.txt' is no array");
  EXPECT_SAYS(message_as<ValueError>([&] { save_npz(path("d"), {{"\xff", ones({1})}}); }), "UTF-8");
  EXPECT_SAYS(message_as<ValueError>([&] { save_npz(path("d"), {{"", ones({1})}}); }), "empty");
  EXPECT_FALSE(std::filesystem::exists(path("d")));
}

TEST_F(NpzFiles, AWriteThatFailsSaysWhyAndLeavesTheOldFile) {
  save_npz(path("a.npz"), {{"x", ones({4})}});
  const std::string before = read_all(path("a.npz"));
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit small{4096, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string text = message_as<IoError>([&] { save_npz(path("a.npz"), {{"x", ones({100000})}}); });
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  EXPECT_SAYS(text, "File too large");
  EXPECT_EQ(read_all(path("a.npz")), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "no temporary file stays";
  EXPECT_SAYS(message_as<IoError>([&] { save_npy(path("none/a.npy"), ones({1})); }),
              "No such file or directory");
  EXPECT_SAYS(message_as<IoError>([&] { load_npy(path("none.npy")); }), "No such file or directory");
}

}  // namespace
}  // namespace vesta
