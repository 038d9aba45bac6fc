// PyTorch's checkpoints: pickles as torch.save writes them (given here as bytes), our writer's files, what must stay
// shared, and everything that must be refused: code, lies about storages, cycles, bombs.
#include "vesta/torch_file.h"

#include "base/file.h"
#include "file_testing.h"
#include "serialize/pickle.h"
#include "serialize/torch_values.h"
#include "serialize/zip.h"
#include "vesta/autograd.h"
#include "vesta/sample_gen.h"

namespace vesta {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

// All of them, those that only store too.
#define VESTA_ROW(name, ...) DType::name,
constexpr DType kAllTypes[] = {VESTA_ALL_DTYPES(VESTA_ROW)};
#undef VESTA_ROW

// An archive of this pickle and these storages.
std::string checkpoint(const std::string& pickle, const Entries& storages = {},
                       const std::string& order = "little") {
  MemorySink<std::string> sink;
  ZipWriter zip(sink);
  zip.add("model/data.pkl", pickle);
  if (!order.empty()) zip.add("model/byteorder", order);
  for (auto& [key, bytes] : storages) zip.add("model/data/" + key, bytes);
  zip.add("model/version", "3\n");
  zip.finish();
  return sink.content;
}
IValue read(const std::string& file) { return read_torch_file(region_of(file), "load_torch 'x'", true); }
IValue read_value(const std::string& pickle, const Entries& storages = {}) {
  return read(checkpoint("\x80\x02" + pickle + ".", storages));
}

std::string short_text(const std::string& text) {
  return raw("X") + char(text.size()) + raw("\0\0\0") + text;
}

// torch._utils._rebuild_tensor_v2 in the opcodes that torch.save uses; numbers are single opcodes such as "K\x03".
std::string tensor_pickle(const std::string& type, const std::string& key, const std::string& count,
                          const std::string& offset, const std::string& sizes, const std::string& strides,
                          const std::string& requires_grad = "\x89", const std::string& more = "") {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + short_text("storage") + "ctorch\n" + type + "\n" +
         short_text(key) + short_text("cpu") + count + "tQ" + offset + sizes + strides + requires_grad +
         "ccollections\nOrderedDict\n)R" + more + "tR";
}
std::string bytes_of(std::initializer_list<float> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()), values.size() * 4);
}
const std::string kFour = raw("K\x04"), kZero = raw("K\x00");
std::string float_vector(const std::string& key) {
  return tensor_pickle("FloatStorage", key, kFour, kZero, raw("K\x04\x85"), raw("K\x01\x85"));
}

TEST(TorchFiles, AStateDictOfTorchSaveIsRead) {
  // torch.save(OrderedDict(w=t, wt=t.t(), row=t[1]), ...) of torch 2.14 for t = [[0, 1], [2, 3]], with its memo numbers,
  // shared storage and the _metadata attribute that state_dict() has.
  const std::string pickle =
      raw("\x80\x02"
          "ccollections\nOrderedDict\nq\x00)Rq\x01(X\x01\x00\x00\x00wq\x02"
          "ctorch._utils\n_rebuild_tensor_v2\nq\x03((X\x07\x00\x00\x00storageq\x04"
          "ctorch\nFloatStorage\nq\x05X\x01\x00\x00\x00"
          "0q\x06X\x03\x00\x00\x00"
          "cpuq\x07K\x04tq\x08QK\x00K\x02K\x02\x86q\x09K\x02K\x01\x86q\x0a\x89h\x00)Rq\x0btq\x0cRq\x0d"
          "X\x02\x00\x00\x00wtq\x0eh\x03(("
          "h\x04h\x05h\x06h\x07K\x04tq\x0fQK\x00h\x09K\x01K\x02\x86q\x10\x89h\x00)Rq\x11tq"
          "\x12Rq\x13"
          "X\x03\x00\x00\x00rowq\x14h\x03(("
          "h\x04h\x05h\x06h\x07K\x04tq\x15QK\x02K\x02\x85q\x16K\x01\x85q\x17\x89h\x00)Rq"
          "\x18tq\x19Rq\x1a"
          "u}q\x1bX\x09\x00\x00\x00_metadataq\x1ch\x00)Rq\x1dsb.");
  const IValue root = read(checkpoint(pickle, {{"0", bytes_of({0, 1, 2, 3})}}));
  ASSERT_EQ(root.str(), "{'w': float32[2, 2], 'wt': float32[2, 2], 'row': float32[2]}");
  Tensor w = root.toDict().at("w").toTensor(), wt = root.toDict().at("wt").toTensor(),
         row = root.toDict().at("row").toTensor();
  EXPECT_EQ(wt.strides().vec(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(w.storage_offset(), 0);
  EXPECT_EQ(row.storage_offset(), 2);
  w.fill_(Scalar(7));  // shared, as in Python
  EXPECT_EQ(row.contiguous().data_ptr<float>()[1], 7);
  EXPECT_EQ(wt.contiguous().data_ptr<float>()[3], 7);
}

TEST(TorchFiles, ValuesOfEveryOpcodeAreRead) {
  const std::pair<std::string, std::string> cases[] = {
      {"N", "None"},
      {"\x88", "True"},
      {"\x89", "False"},
      {raw("K\xff"), "255"},
      {raw("M\x01\x02"), "513"},
      {raw("J\xfe\xff\xff\xff"), "-2"},
      {raw("\x8a\x00"), "0"},
      {raw("\x8a\x01\xff"), "-1"},
      {raw("\x8a\x05\x00\x00\x00\x00\x01"), "4294967296"},
      {raw("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"), "-9223372036854775808"},
      {raw("\x8b\x02\x00\x00\x00\x00\x80"), "-32768"},
      {raw("G\x3f\xf8\x00\x00\x00\x00\x00\x00"), "1.5"},
      {raw("X\x02\x00\x00\x00\xc3\xa4"), "'ä'"},
      {raw("\x8c\x02hi"), "'hi'"},
      {raw("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi"), "'hi'"},
      {raw("U\x02hi"), "'hi'"},
      {raw("T\x02\x00\x00\x00hi"), "'hi'"},
      {raw("C\x02hi"), "'hi'"},
      {raw("B\x02\x00\x00\x00hi"), "'hi'"},
      {raw("\x8e\x02\x00\x00\x00\x00\x00\x00\x00hi"), "'hi'"},
      {"]", "[]"},
      {"]Na", "[None]"},
      {"](NNe", "[None, None]"},
      {")", "()"},
      {"N\x85", "(None,)"},
      {"NN\x86", "(None, None)"},
      {"NNN\x87", "(None, None, None)"},
      {"(NNNNt", "(None, None, None, None)"},
      {"}", "{}"},
      {raw("}K\x01Ns"), "{1: None}"},
      {raw("}(K\x01NK\x02\x88K\x01\x89u"), "{1: False, 2: True}"},
      {raw("}N\x88\x86Ns"), "{(None, True): None}"},
      {"N2\x86", "(None, None)"},
      {"NN0", "None"},
      {"(N(NN1t", "(None,)"},
      {"]q\x01h\x01\x86", "([], [])"},
      {raw("]r\x01\x00\x00\x00j\x01\x00\x00\x00\x86"), "([], [])"},
      {raw("]\x94h\x00\x86"), "([], [])"},
      {raw("\x95\x00\x00\x00\x00\x00\x00\x00\x00N"), "None"},
      {"ctorch\nfloat32\n", "float32"},
      {"\x8c\x05torch\x8c\x05int64\x93", "int64"},
      {raw("ctorch\nSize\nK\x02K\x03\x86\x85R"), "(2, 3)"},
      {"ctorch\ndevice\n" + short_text("cpu") + "\x85R", "cpu"},
      {"ctorch\ndevice\n" + short_text("cuda") + raw("K\x01\x86R"), "cuda:1"},
      {raw("c__builtin__\ncomplex\nG\x3f\xf0\x00\x00\x00\x00\x00\x00K\x02\x86R"), "(1,2)"},
      {"c_codecs\nencode\n" + raw("X\x03\x00\x00\x00\xc3\xbfz") + short_text("latin1") + "\x86R", "'\xffz'"},
      {"ccollections\nOrderedDict\n](]" + short_text("k") + "aNaetR", "not reached"},
      {"ccollections\nCounter\n)R" + short_text("k") + raw("K\x02s"), "{'k': 2}"},
      {"ctorch.jit._pickle\nbuild_intlist\n]" + raw("(K\x01K\x02"
                                                    "e\x85R"),
       "[1, 2]"},
      {"c__torch__.torch.nn.modules.linear\nLinear\n)\x81}" + short_text("training") + "\x88sb",
       "{'training': True}"},
      {"c__torch__\nEmpty\n)\x81", "{}"},
  };
  for (auto& [pickle, expected] : cases) {
    if (expected == "not reached") continue;
    std::string got;
    ASSERT_NO_THROW(got = read_value(pickle).str()) << expected;
    EXPECT_EQ(got, expected);
  }
  // Python 2's form of an ordered dict.
  EXPECT_EQ(read_value("ccollections\nOrderedDict\n]]" + raw("(K\x01K\x02"
                                                             "ea\x85R"))
                .str(),
            "{1: 2}");
}

TEST(TorchFiles, NamesThatCouldRunCodeAreRefusedByName) {
  const std::string command = short_text("true");
  for (auto& [module, name] :
       std::vector<std::pair<std::string, std::string>>{{"os", "system"},
                                                        {"posix", "system"},
                                                        {"builtins", "eval"},
                                                        {"__builtin__", "exec"},
                                                        {"builtins", "getattr"},
                                                        {"subprocess", "Popen"},
                                                        {"torch.storage", "_load_from_bytes"},
                                                        {"torch._utils", "_rebuild_sparse_tensor"},
                                                        {"torch.nn.modules.linear", "Linear"},
                                                        {"numpy.core.multiarray", "_reconstruct"},
                                                        {"__torch__x", "Module"},
                                                        {"collections", "OrderedDict.fromkeys"}}) {
    EXPECT_SAYS(message_as<NotImplementedError>(
                    [&] { read_value("c" + module + "\n" + name + "\n" + command + "\x85R"); }),
                "asks for '" + module + "." + name + "'");
    EXPECT_SAYS(message_as<NotImplementedError>(
                    [&] { read_value(short_text(module) + short_text(name) + "\x93" + command + "\x85R"); }),
                "asks for '" + module + "." + name + "'");
  }
  EXPECT_SAYS(message_as<NotImplementedError>([] { read_value("(ios\nsystem\n"); }), "opcode 105");  // INST
  EXPECT_SAYS(message_as<NotImplementedError>([] { read_value("(cos\nsystem\no"); }), "asks for 'os.system'");
  EXPECT_SAYS(message_as<NotImplementedError>([] { read_value("(No"); }), "opcode 111");            // OBJ
  EXPECT_SAYS(message_as<NotImplementedError>([] { read_value(raw("\x82\x01")); }), "opcode 130");  // EXT1
  EXPECT_SAYS(message_as<NotImplementedError>([] { read_value("ctorch\nqint8\n"); }), "type qint8");
  EXPECT_SAYS(message_as<NotImplementedError>([] { read_value("ctorch\nQInt8Storage\n"); }),
              "type QInt8Storage");
}

TEST(TorchFiles, MalformedPicklesAreRefusedWithTheReason) {
  std::string deep = "N", cycle =
                              raw("]q\x00h\x00"
                                  "a");
  for (int i = 0; i < 500; ++i) deep += "\x85";
  // Each list holds the one before twice: 2^40 values of 200 bytes.
  std::string bomb = "]q\x01" + raw("K\x01"
                                    "a");
  for (char i = 1; i < 41; ++i) bomb += raw("0]q") + char(i + 1) + "(h" + i + "h" + i + "e";
  const std::pair<std::string, std::string> cases[] = {
      {"0", "takes a value"},
      {"N(0a", "takes a value"},
      {"e", "takes values"},
      {"N(Ne", "not for a list"},
      {"](Nu", "a key without a value"},
      {"](NNu", "not for a dict"},
      {"Na", "takes a value"},
      {"N)R", "not of a known name"},
      {"ctorch\nSize\nNR", "not of a known name"},
      {"ctorch\nTensor\n)R", "only a name"},
      {"ctorch\nFloatStorage\n)R", "only a name"},
      {"ctorch\nTensor\n", "a Python name stands"},
      {"NQ", "not described by a tuple"},
      {")Q", "storage outside of a tensor"},
      {"N}b", "not for a dict"},
      {"c__torch__\nM\n)\x81Nb", "is not a dict"},
      {"c__torch__\nM\n)\x81}b}b", "its state twice"},
      {"h\x05", "refers to a value"},
      {raw("\x8a\x09") + std::string(9, '\1'), "does not fit into 64 bits"},
      {raw("\x8b\xff\xff\xff\xff"), "has -1 bytes"},
      {raw("X\xff\xff\xff\xff"), "ends too early"},
      {raw("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"), "ends too early"},
      {raw("X\x01\x00\x00\x00\xff"), "not UTF-8"},
      {"ctorch", "does not end"},
      {"NN\x93", "not text"},
      {"}]Ns", "a list is the key"},
      {"}}Ns", "a dict is the key"},
      {deep, "more than 400 deep"},
      {cycle, "contain themselves"},
      {bomb, "repeated too often"},
      {"ccollections\nOrderedDict\nN\x85R", "arguments that are not accepted"},
      {"ccollections\nOrderedDict\n]Na\x85R", "not made of pairs"},
      {"c_codecs\nencode\nNN\x86R", "latin1"},
      {"c_codecs\nencode\n" + raw("X\x02\x00\x00\x00\xc4\x80") + short_text("latin1") + "\x86R",
       "beyond latin1"},
      {"ctorch\ndevice\n" + short_text("moon") + "\x85R", "device 'moon'"},
      {"c__builtin__\ncomplex\nNN\x86R", "not a number"},
  };
  for (auto& [pickle, reason] : cases) {
    const std::string got = message_of([&] { read_value(pickle); });
    EXPECT_SAYS(got, reason);
    EXPECT_EQ(got.find("load_torch 'x': "), 0u) << got;
  }
  EXPECT_SAYS(message_as<IoError>([] { read(checkpoint("\x80\x02N")); }), "ends too early");
  EXPECT_SAYS(message_as<IoError>([] { read(checkpoint("")); }), "ends too early");
  EXPECT_SAYS(message_as<NotImplementedError>([] { read(checkpoint("\x80\x06N.")); }), "protocol 6");
}

TEST(TorchFiles, TensorsThatDoNotLieInTheirStorageAreRefused) {
  const Entries storage = {{"0", bytes_of({1, 2, 3, 4})}};
  const std::string two = raw("K\x02\x85"), four = raw("K\x04\x85"), one = raw("K\x01\x85"),
                    minus = raw("J\xff\xff\xff\xff");
  const std::string huge = raw("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"),
                    large = raw("\x8a\x05\x00\x00\x00\x00\x01");
  const auto with = [&](const std::string& offset, const std::string& sizes, const std::string& strides,
                        const std::string& count = kFour, const std::string& grad = "\x89",
                        const std::string& type = "FloatStorage") {
    return message_of(
        [&] { read_value(tensor_pickle(type, "0", count, offset, sizes, strides, grad), storage); });
  };
  EXPECT_EQ(with(kZero, four, one), "nothing thrown");
  EXPECT_EQ(with(raw("K\x02"), two, one), "nothing thrown");
  EXPECT_EQ(with(raw("K\x03"), four, raw("K\x00\x85")), "nothing thrown") << "one element, expanded";
  EXPECT_EQ(with(kFour, raw("K\x00\x85"), one), "nothing thrown") << "nothing, at the end";
  const std::string outside = "does not lie in the 16 bytes of storage '0'";
  EXPECT_SAYS(with(raw("K\x01"), four, one), outside);
  EXPECT_SAYS(with(kZero, four, two), outside);
  EXPECT_SAYS(with(kZero, raw("K\x05\x85"), one), outside);
  EXPECT_SAYS(with(kFour, raw(")"), ")"), outside);
  EXPECT_SAYS(with(raw("K\x05"), raw("K\x00\x85"), one), outside);
  EXPECT_SAYS(with(minus, two, one), outside);
  EXPECT_SAYS(with(huge, two, one), outside);
  EXPECT_SAYS(with(kZero, huge + "\x85", one), outside);
  EXPECT_SAYS(with(kZero, huge + "\x85", raw("K\x00\x85")), outside);
  EXPECT_SAYS(with(kZero, two, huge + "\x85"), outside);
  EXPECT_SAYS(with(kZero, large + large + "\x86", raw("K\x00K\x00\x86")), outside);
  EXPECT_SAYS(with(kZero, kZero + large + large + "\x87", raw("K\x00K\x00K\x00\x87")), outside);
  EXPECT_SAYS(with(kZero, minus + "\x85", one), "a size of -1");
  EXPECT_SAYS(with(kZero, two, minus + "\x85"), "a stride of -1");
  EXPECT_SAYS(with(kZero, two, ")"), "1 sizes and 0 strides");
  EXPECT_SAYS(with(kZero, "N", one), "is not a tuple");
  EXPECT_SAYS(with("N", two, one), "is not a whole number");
  EXPECT_SAYS(with(kZero, four, one, raw("K\x05")), "claims 5 elements");
  EXPECT_SAYS(with(kZero, four, one, minus), "claims -1 elements");
  EXPECT_SAYS(with(kZero, four, one, huge), "claims 9223372036854775807 elements");
  EXPECT_SAYS(with(kZero, four, one, kFour, "N"), "is not a bool");
  EXPECT_SAYS(with(kZero, two, one, raw("K\x02"), "\x88", "LongStorage"),
              "int64 claims to require a gradient");
  EXPECT_SAYS(with(kZero, two, one, raw("K\x04"), "\x89", "BoolStorage"),
              "element 2 of bool storage '0' is 128");
  std::string dims = "(";
  for (int i = 0; i < 65; ++i) dims += raw("K\x01");
  EXPECT_SAYS(with(kZero, dims + "t", dims + "t"), "65 dims");
  EXPECT_SAYS(message_of([&] { read_value(float_vector("1"), storage); }), "no entry for storage '1'");
  EXPECT_SAYS(message_of([&] { read_value("ctorch._utils\n_rebuild_tensor_v2\n(NNNNNNtR"); }),
              "has no storage");
  EXPECT_SAYS(message_of([&] { read_value("ctorch._utils\n_rebuild_tensor_v2\n)R"); }), "with 0 arguments");
  EXPECT_SAYS(message_of([&] { read_value("ctorch._utils\n_rebuild_parameter\nNNN\x87R"); }),
              "made of a None");
}

TEST(TorchFiles, ParametersMetadataAndUntypedStoragesAreRead) {
  const Entries storage = {{"0", bytes_of({1, 2, 3, 4})}};
  const IValue p = read_value("ctorch._utils\n_rebuild_parameter\n" + float_vector("0") + "\x88" +
                                  "ccollections\nOrderedDict\n)R\x87R",
                              storage);
  EXPECT_TRUE(p.toTensor().requires_grad() && p.toTensor().is_leaf());
  const IValue typed =
      read_value("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\n" +
                     std::string("ctorch.nn.parameter\nParameter\n") +
                     float_vector("0").substr(
                         strlen("ctorch._utils\n_rebuild_tensor_v2\n"),
                         float_vector("0").size() - strlen("ctorch._utils\n_rebuild_tensor_v2\n") - 1) +
                     "}tR",
                 storage);
  EXPECT_EQ(typed.toTensor().contiguous().data_ptr<float>()[3], 4);
  const IValue z = read_value(tensor_pickle("ComplexFloatStorage", "0", raw("K\x02"), kZero, raw("K\x02\x85"),
                                            raw("K\x01\x85"), "\x89", "}" + short_text("conj") + "\x88s"),
                              storage);
  EXPECT_EQ(z.toTensor().resolve_conj().data_ptr<std::complex<float>>()[0], std::complex<float>(1, -2));
  const IValue n = read_value(tensor_pickle("FloatStorage", "0", kFour, kZero, raw("K\x04\x85"),
                                            raw("K\x01\x85"), "\x89", "}" + short_text("neg") + "\x88s"),
                              storage);
  EXPECT_EQ(n.toTensor().resolve_neg().data_ptr<float>()[1], -2);
  EXPECT_SAYS(message_of([&] {
                read_value(tensor_pickle("FloatStorage", "0", kFour, kZero, raw("K\x04\x85"),
                                         raw("K\x01\x85"), "\x89", "}" + short_text("other") + "\x88s"),
                           storage);
              }),
              "attribute 'other'");
  // _rebuild_tensor_v3 names the dtype and counts bytes.
  std::string v3 = tensor_pickle("FloatStorage", "0", raw("K\x10"), kZero, raw("K\x02\x85"), raw("K\x01\x85"),
                                 "\x89", "ctorch\nfloat64\n");
  v3.replace(v3.find("_v2"), 3, "_v3");
  v3.replace(v3.find("ctorch\nFloatStorage"), strlen("ctorch\nFloatStorage"),
             "ctorch.storage\nUntypedStorage");
  EXPECT_EQ(read_value(v3, storage).toTensor().dtype(), kFloat64);
}

TEST(TorchFiles, OneObjectNamedTwiceStaysOneTensor) {
  const IValue both = read_value(float_vector("0") + "q\x09h\x09\x86", {{"0", bytes_of({1, 2, 3, 4})}});
  EXPECT_TRUE(both.toTuple()[0].toTensor().is_same(both.toTuple()[1].toTensor()));
}

TEST(TorchFiles, AnArchiveThatDoesNotNameItsByteOrderIsLittleEndian) {
  // PyTorch before 2.1.
  const IValue t =
      read(checkpoint("\x80\x02" + float_vector("0") + ".", {{"0", bytes_of({1, 2, 3, 4})}}, ""));
  EXPECT_EQ(t.toTensor().data_ptr<float>()[2], 3);
}

TEST(TorchFiles, ABigEndianArchiveIsTurnedAround) {
  std::string bytes = bytes_of({1, 2, 3, 4});
  for (size_t i = 0; i < 16; i += 4)
    std::reverse(bytes.begin() + ptrdiff_t(i), bytes.begin() + ptrdiff_t(i) + 4);
  const std::string pickle = "\x80\x02" + float_vector("0") + float_vector("0") + "\x86.";
  const IValue both = read(checkpoint(pickle, {{"0", bytes}}, "big"));
  for (auto& t : both.toTensorVector()) EXPECT_EQ(t.data_ptr<float>()[2], 3) << "turned once, not twice";
  EXPECT_SAYS(message_of([&] {
                read(checkpoint(pickle, {{"0", bytes}}, "middle"));
              }),
              "byte order is 'middle'");
}

// The stream before PyTorch 1.6, as torch.save(_use_new_zipfile_serialization=False) writes it.
std::string stream(const std::string& value, const Entries& storages, size_t width = 4) {
  std::string out = raw("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.");
  out += "\x80\x02}(" + short_text("protocol_version") + raw("M\xe9\x03") + short_text("little_endian") +
         "\x88u.";
  out += "\x80\x02" + value + ".\x80\x02](";
  for (auto& [key, bytes] : storages) out += short_text(key);
  out += "e.";
  for (auto& [key, bytes] : storages) {
    const uint64_t count = bytes.size() / width;
    out.append(reinterpret_cast<const char*>(&count), 8);
    out += bytes;
  }
  return out;
}
std::string stream_vector(const std::string& key) {
  std::string pickle = float_vector(key);  // six parts to a storage, the last a view of another or None
  return pickle.replace(pickle.find("tQ"), 2, "NtQ");
}

TEST(TorchFiles, TheStreamOfOlderVersionsIsRead) {
  const std::string file = stream(stream_vector("a") + stream_vector("b") + "\x86",
                                  {{"a", bytes_of({1, 2, 3, 4})}, {"b", bytes_of({5, 6, 7, 8})}});
  const auto both = read(file).toTensorVector();
  EXPECT_EQ(both[0].data_ptr<float>()[3], 4);
  EXPECT_EQ(both[1].data_ptr<float>()[0], 5);
  const auto refused = [](const std::string& bytes) { return message_of([&] { read(bytes); }); };
  EXPECT_SAYS(refused(file.substr(0, file.size() - 1)), "claims 4 elements, but only 15 bytes");
  EXPECT_SAYS(refused(stream(stream_vector("a"), {})), "no data for storage 'a'");
  EXPECT_SAYS(refused(stream("N", {{"a", ""}})), "belongs to no tensor");
  EXPECT_SAYS(refused(stream(stream_vector("a"), {{"a", ""}, {"a", ""}})), "appears twice");
  EXPECT_SAYS(refused(stream(stream_vector("a"), {{"a", bytes_of({1})}})),
              "claims 4 elements of 4 bytes, but has 4");
  std::string big = file;
  big.replace(big.find(short_text("little_endian") + "\x88") + short_text("little_endian").size(), 1, "\x89");
  EXPECT_SAYS(refused(big), "big-endian stream");
}

TEST(TorchFiles, OtherFilesAreToldApart) {
  const auto refused = [](const std::string& bytes) { return message_of([&] { read(bytes); }); };
  EXPECT_SAYS(refused(""), "only 0 bytes");
  EXPECT_SAYS(refused("\x80\x02N."), "lacks the magic number");
  EXPECT_SAYS(refused(std::string(257, 0) + "ustar" + std::string(300, 0)), "tar format");
  EXPECT_SAYS(refused(std::string(1000, 'x')), "no end of a zip archive");
  MemorySink<std::string> sink;
  ZipWriter zip(sink);
  zip.add("x.npy", "1");
  zip.finish();
  EXPECT_SAYS(refused(sink.content), "no PyTorch checkpoint");
}

class TorchSaved : public FileTest {};

TEST_F(TorchSaved, NestedValuesOfEveryKindAreReadBack) {
  const IValue value =
      GenericDict{{"epoch", 3},
                  {"negative", -70000},
                  {"large", INT64_MIN},
                  {"rate", 1e-3},
                  {"infinite", -INFINITY},
                  {"complex", std::complex<double>(1, -2)},
                  {"flags", IValue::list({true, false, nullptr})},
                  {"betas", IValue::tuple({0.9, 0.999})},
                  {"empty", IValue::tuple({GenericList(), GenericDict(), IValue::tuple({})})},
                  {"dtype", kBFloat16},
                  {"device", Device("cpu")},
                  {7, "a number as key"},
                  {IValue::tuple({1, "b"}), "ä\n\"'"},
                  {"inner", GenericDict{{"deep", IValue::list({GenericDict{{"x", 1}}})}}}};
  save_torch(path("a.pt"), value);
  const IValue back = load_torch(path("a.pt"));
  EXPECT_TRUE(back == value) << back.str() << "\n" << value.str();
  save_torch(path("b.pt"), back);
  EXPECT_EQ(read_all(path("a.pt")), read_all(path("b.pt"))) << "equal values give equal files";
  EXPECT_TRUE(pickle_load(pickle_save(value)) == value);
}

TEST_F(TorchSaved, TensorsOfEveryTypeShapeAndStrideAreReadBackBitForBit) {
  const uint64_t seed = 77;
  RecordProperty("seed", int(seed));
  for (DType dtype : kAllTypes) {
    SampleGen gen(dtype, seed);
    const Tensor base = gen.t({4, 6, 5});
    GenericList list;
    for (const Tensor& t : {gen.t({}), gen.t({0}), gen.t({3, 0, 2}), gen.t({7}), gen.t({2, 3, 4, 5}),
                            gen.t({3, 4}).t(), base.permute({2, 0, 1}), base.slice(1, 1, 6, 2),
                            base.slice(0, 0, 1).expand({3, 6, 5}), gen.t({4, 4}).select(1, 2)})
      list.push_back(t);
    if (is_complex(dtype)) list.push_back(gen.t({3}).conj());
    save_torch(path("a.pt"), list);
    const auto back = load_torch(path("a.pt")).toTensorVector();
    for (size_t i = 0; i < back.size(); ++i) {
      const Tensor& t = list[i].toTensor();
      EXPECT_TRUE(same_elements(t, back[i])) << dtype_name(dtype) << " " << i;
      if (t.is_non_overlapping_and_dense() && t.numel() > 1 && !t.is_conj()) {
        EXPECT_EQ(t.strides().vec(), back[i].strides().vec()) << i;
      }
    }
  }
}

TEST_F(TorchSaved, SharedTensorsStaySharedAndOnlyWhatIsShownIsWritten) {
  Tensor base = arange(1000, TensorOptions(kFloat32));
  const Tensor a = base.slice(0, 100, 110), b = base.slice(0, 105, 115),
               alone = zeros({100000}).slice(0, 5, 8);
  save_torch(path("a.pt"), IValue::list({a, b, a, alone}));
  auto back = load_torch(path("a.pt")).toTensorVector();
  EXPECT_TRUE(same_elements(back[0], a) && same_elements(back[1], b));
  EXPECT_TRUE(back[0].is_same(back[2]));
  back[0].fill_(Scalar(-1));
  EXPECT_EQ(back[1].data_ptr<float>()[4], -1);
  EXPECT_EQ(back[1].data_ptr<float>()[5], 110);
  EXPECT_LT(std::filesystem::file_size(path("a.pt")), 4000u);
}

TEST_F(TorchSaved, GradientsAreRequiredAgainAndWritesDoNotReachTheFile) {
  const Tensor leaf = ones({100}).requires_grad_();
  save_torch(path("a.pt"), IValue::list({leaf, ones({2})}));
  const std::string before = read_all(path("a.pt"));
  auto back = load_torch(path("a.pt")).toTensorVector();
  EXPECT_TRUE(back[0].requires_grad() && back[0].is_leaf());
  EXPECT_FALSE(back[1].requires_grad());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(back[0].data_ptr()) % 64, 0u);
  {
    const NoGradGuard no_grad;
    back[0].zero_();
  }
  EXPECT_EQ(read_all(path("a.pt")), before);
}

TEST_F(TorchSaved, WhatCannotBeWrittenIsRefusedAndNothingAppears) {
  EXPECT_SAYS(message_as<ValueError>([&] { save_torch(path("a"), "\xff"); }), "not UTF-8");
  EXPECT_SAYS(message_as<ValueError>([&] { save_torch(path("a"), empty({2}, Device(DeviceType::Meta))); }),
              "no data");
  IValue deep;
  for (int i = 0; i < 500; ++i) deep = IValue::list({deep});
  EXPECT_SAYS(message_as<ValueError>([&] { save_torch(path("a"), deep); }), "more than 400 deep");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_SAYS(message_as<IoError>([&] { save_torch(path("none/a"), 1); }), "No such file or directory");
}

TEST_F(TorchSaved, AWrongChecksumIsFoundUnlessItIsNotWanted) {
  save_torch(path("a.pt"), ones({100}));
  std::string file = read_all(path("a.pt"));
  const size_t at = file.find("archive/data/0");
  file[file.find(raw("\0\0\x80\x3f\0\0\x80\x3f"), at) + 2] = '\x81';
  write_file(path("b.pt"), file);
  EXPECT_SAYS(message_as<IoError>([&] { load_torch(path("b.pt")); }), "checksum of entry 'archive/data/0'");
  EXPECT_EQ(load_torch(path("b.pt"), {.check_crc = false}).toTensor().numel(), 100);
}

TEST(TorchNames, NestedTensorsGetDottedNames) {
  const Tensor a = ones({1}), b = ones({2});
  std::vector<std::string> others;
  const auto named = named_tensors(GenericDict{{"model", GenericDict{{"w", a}}},
                                               {"list", IValue::list({b, 5})},
                                               {3, IValue::tuple({a})},
                                               {"n", nullptr}},
                                   &others);
  EXPECT_EQ(named.keys(), (std::vector<std::string>{"model.w", "list.0", "3.0"}));
  EXPECT_EQ(others, (std::vector<std::string>{"list.1", "n"}));
  EXPECT_EQ(named_tensors(a).keys(), std::vector<std::string>{"0"});
  EXPECT_SAYS(message_as<ValueError>([&] {
                named_tensors(GenericDict{{"a.b", a}, {"a", GenericDict{{"b", a}}}});
              }),
              "'a.b' appears twice");
}

TEST(TorchValues, KindsAreCheckedAndDictsKeepTheirOrder) {
  EXPECT_SAYS(message_as<TypeError>([] { IValue(1).toTensor(); }), "expected a tensor, got a int");
  EXPECT_SAYS(message_as<TypeError>([] { IValue("x").toInt(); }), "expected a int, got a string");
  EXPECT_SAYS(message_as<TypeError>([] { GenericDict().insert(GenericList(), 1); }),
              "a list cannot be a key");
  EXPECT_SAYS(message_as<IndexError>([] { GenericDict{{"a", 1}}.at("b"); }), "key 'b' is missing");
  EXPECT_EQ(IValue(2).toDouble(), 2.0);
  EXPECT_TRUE(IValue(Tensor()).isNone());
  GenericDict dict;
  for (int i = 99; i >= 0; --i) EXPECT_TRUE(dict.insert(i, i * i));
  EXPECT_FALSE(dict.insert(7, 0));
  EXPECT_EQ(dict.begin()->first.toInt(), 99);
  EXPECT_EQ(dict.at(7).toInt(), 49);
  EXPECT_FALSE(dict.contains(7.0)) << "keys have a kind";
  GenericDict copy = dict;
  copy.insert_or_assign(7, "changed");
  EXPECT_EQ(dict.at(7).toInt(), 49) << "copies are independent";
  EXPECT_EQ(IValue::tuple({1}).str(), "(1,)");
}

}  // namespace
}  // namespace vesta
