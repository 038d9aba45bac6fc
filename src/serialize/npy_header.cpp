// Parser and printer of .npy headers: a Python dict literal with the keys descr, fortran_order and shape. Only what NumPy
// writes is read (quoted text, booleans, a tuple of whole numbers); nothing is evaluated.
#include "serialize/npy_header.h"

#include <bit>
#include <cstring>

#include "core/storage.h"
#include "serialize/format_error.h"
#include "vesta/ops.h"

static_assert(std::endian::native == std::endian::little,
              "the byte order of .npy types is given for little-endian");

namespace vesta {
namespace {

struct DTypeText {
  char kind;
  size_t width;
  DType dtype;
};
constexpr DTypeText kDTypes[] = {
    {'b', 1, kBool},        {'u', 1, kUInt8},   {'i', 1, kInt8},    {'i', 2, kInt16},   {'i', 4, kInt32},
    {'i', 8, kInt64},       {'f', 2, kFloat16}, {'f', 4, kFloat32}, {'f', 8, kFloat64}, {'c', 8, kComplex64},
    {'c', 16, kComplex128}, {'u', 2, kUInt16},  {'u', 4, kUInt32},  {'u', 8, kUInt64}};
constexpr std::string_view kMagic = "\x93NUMPY";

// Types of NumPy that Vesta has not got, in words.
const char* other_type(char kind) {
  switch (kind) {
    case 'f':
      return "long double";
    case 'c':
      return "complex long double";
    case 'O':
      return "Python objects, which are never loaded";
    case 'S':
    case 'a':
    case 'U':
    case 'T':
      return "text";
    case 'M':
    case 'm':
      return "dates and times";
    case 'V':
      return "raw bytes, as NumPy stores records and types of other packages such as bfloat16";
    default:
      return nullptr;
  }
}

class LiteralReader {
 public:
  LiteralReader(std::string_view text, const std::string& where_) : text_(text), where(where_) {}

  void read(NpyHeader* header) {
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      bool* had = key == "descr"           ? &has_descr
                  : key == "fortran_order" ? &has_order
                  : key == "shape"         ? &has_shape
                                           : nullptr;
      VESTA_FORMAT_CHECK(had, "the header has an unknown key ", shown(key));
      VESTA_FORMAT_CHECK(!*had, "the header has the key ", shown(key), " twice");
      *had = true;
      if (had == &has_descr)
        read_descr(header);
      else if (had == &has_order)
        header->fortran = boolean();
      else
        read_shape(header);
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    VESTA_FORMAT_CHECK(at_ == text_.size(), "the header goes on after its dict: ", shown(text_.substr(at_)));
    VESTA_FORMAT_CHECK(has_descr && has_order && has_shape, "the header lacks descr, fortran_order or shape");
  }

 private:
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    VESTA_FORMAT_CHECK(take(c), "expected '", c, "' at byte ", at_, " of the header, got ",
                       shown(text_.substr(at_, 20)));
  }
  std::string quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    VESTA_FORMAT_CHECK(quote == '\'' || quote == '"', "expected quoted text at byte ", at_,
                       " of the header, got ", shown(text_.substr(at_, 20)));
    const size_t end = text_.find(quote, at_ + 1);
    VESTA_FORMAT_CHECK(end != std::string_view::npos, "the text at byte ", at_,
                       " of the header does not end");
    std::string text(text_.substr(at_ + 1, end - at_ - 1));
    VESTA_FORMAT_CHECK(text.find('\\') == std::string::npos, "did not expect escapes in ", shown(text));
    at_ = end + 1;
    return text;
  }
  bool boolean() {
    skip_space();
    for (auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}})
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    VESTA_FORMAT_CHECK(false, "expected True or False for fortran_order, got ", shown(text_.substr(at_, 20)));
    return false;
  }
  void read_descr(NpyHeader* header) {
    skip_space();
    VESTA_CHECK_AS(NotImplementedError, at_ == text_.size() || text_[at_] != '[', where,
                   ": the array holds records (", shown(text_.substr(at_, 60)), "), which are not supported");
    const std::string text = quoted();
    size_t at = 0;
    char order = '|';
    if (!text.empty() && std::strchr("<>=|", text[0])) order = text[at++];
    const char kind = at < text.size() ? text[at++] : '\0';
    size_t width = 0;
    const bool number = at < text.size() && text.size() - at <= 6 &&
                        text.find_first_not_of("0123456789", at) == std::string::npos;
    for (size_t i = at; number && i < text.size(); ++i) width = width * 10 + size_t(text[i] - '0');
    for (auto& d : kDTypes)
      if (number && d.kind == kind && d.width == width) header->dtype = d.dtype;
    if (header->dtype == DType::Undefined) {
      const char* words = other_type(kind);
      VESTA_CHECK_AS(NotImplementedError, !words, where, ": the array has type ", shown(text), " (", words,
                     "), which is not supported");
      VESTA_FORMAT_CHECK(false, "the array has an unknown type ", shown(text));
    }
    VESTA_FORMAT_CHECK(order != '|' || width == 1, "the type ", shown(text), " lacks its byte order");
    header->swapped = order == '>' && width > 1;
  }
  void read_shape(NpyHeader* header) {
    expect('(');
    bool comma = true;
    while (!take(')')) {
      VESTA_FORMAT_CHECK(comma, "expected ',' at byte ", at_, " of the header");
      VESTA_FORMAT_CHECK(header->sizes.size() < kMaxNpyDims, "the array has more than ", kMaxNpyDims,
                         " dims");
      header->sizes.push_back(whole_number());
      comma = take(',');
    }
    VESTA_FORMAT_CHECK(comma || header->sizes.size() != 1, "expected a tuple for shape, got a number");
  }
  int64_t whole_number() {
    skip_space();
    const size_t begin = at_;
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      VESTA_FORMAT_CHECK(!__builtin_mul_overflow(value, int64_t{10}, &value) &&
                             !__builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value),
                         "a size does not fit into 63 bits: ", shown(text_.substr(begin, 40)));
    VESTA_FORMAT_CHECK(at_ > begin, "expected a size at byte ", at_, " of the header, got ",
                       shown(text_.substr(at_, 20)));
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // as Python 2 printed longs
    return value;
  }

  std::string_view text_;
  const std::string& where;  // NOLINT: the name that VESTA_FORMAT_CHECK uses
  size_t at_ = 0;
};

// Strides of Fortran order, in elements.
std::vector<int64_t> fortran_strides(IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    strides[d] = step;
    step *= sizes[d] > 1 ? sizes[d] : 1;
  }
  return strides;
}

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> file, const std::string& where) {
  VESTA_FORMAT_CHECK(file.size() >= 10 && std::memcmp(file.data(), kMagic.data(), kMagic.size()) == 0,
                     "the data do not start with the magic text of .npy");
  const unsigned major = unsigned(file[6]), minor = unsigned(file[7]);
  VESTA_CHECK_AS(NotImplementedError, major >= 1 && major <= 3 && minor == 0, where, ": format version ",
                 major, ".", minor, " is not supported, expected 1.0, 2.0 or 3.0");
  const size_t length_bytes = major == 1 ? 2 : 4, start = 8 + length_bytes;
  VESTA_FORMAT_CHECK(file.size() >= start, "the data end inside the header");
  uint64_t length = 0;
  std::memcpy(&length, file.data() + 8, length_bytes);
  VESTA_FORMAT_CHECK(length <= kMaxNpyHeader, "the header claims ", length, " bytes, at most ", kMaxNpyHeader,
                     " are accepted");
  VESTA_FORMAT_CHECK(length <= file.size() - start, "the header claims ", length, " bytes, but only ",
                     file.size() - start, " follow");
  NpyHeader header;
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + start, size_t(length));
  LiteralReader(text, where).read(&header);
  header.begin = start + length;

  // Sizes beside a zero count too, as in NumPy: strides are made of them.
  uint64_t bytes = element_size(header.dtype);
  bool empty = false;
  for (int64_t n : header.sizes) {
    empty |= n == 0;
    VESTA_FORMAT_CHECK(
        !__builtin_mul_overflow(bytes, uint64_t(n ? n : 1), &bytes) && bytes <= uint64_t(INT64_MAX),
        "the array's sizes do not fit into 63 bits");
  }
  header.bytes = empty ? 0 : bytes;
  const uint64_t rest = file.size() - header.begin;
  VESTA_FORMAT_CHECK(header.bytes <= rest, "the array needs ", header.bytes, " bytes, but only ", rest,
                     " follow");
  VESTA_FORMAT_CHECK(header.bytes == rest, rest - header.bytes,
                     " bytes follow the array; one array is expected");
  return header;
}

std::string print_npy_header(DType dtype, bool fortran, IntArrayRef sizes, const std::string& where) {
  const DTypeText* found = nullptr;
  for (auto& d : kDTypes)
    if (d.dtype == dtype) found = &d;
  VESTA_CHECK(found, where, ": NumPy has no type ", dtype_name(dtype), "; convert to float32 first");
  std::string text = "{'descr': '";
  text += found->width == 1 ? '|' : '<';
  text += found->kind + std::to_string(found->width) + "', 'fortran_order': " + (fortran ? "True" : "False") +
          ", 'shape': (";
  for (size_t d = 0; d < sizes.size(); ++d) text += (d ? ", " : "") + std::to_string(sizes[d]);
  text += sizes.size() == 1 ? ",), }" : "), }";
  const size_t used = 10 + text.size() + 1;
  text.append((64 - used % 64) % 64, ' ');
  text += '\n';
  std::string out(kMagic);
  out += '\1';
  out += '\0';
  out += char(text.size() & 255);
  out += char(text.size() >> 8);
  return out + text;
}

Tensor npy_tensor(const ByteRegion& file, const std::string& where) {
  const NpyHeader header = parse_npy_header(file.bytes(), where);
  ByteRegion elements = file.slice(size_t(header.begin), size_t(header.bytes));
  if (header.dtype == kBool) {
    const size_t bad = find_bad_bool(elements.data(), elements.size());
    VESTA_FORMAT_CHECK(bad == elements.size(), "element ", bad, " of the bool array is ",
                       int(elements.data()[bad]), ", expected 0 or 1");
  }
  if (header.swapped) {
    elements = copy_region(elements.data(), elements.size());
    swap_bytes(elements.data(), elements.size(), header.dtype);
  }
  std::vector<int64_t> strides(header.sizes.size());
  contiguous_strides(header.sizes.data(), int(header.sizes.size()), strides.data());
  if (header.fortran) strides = fortran_strides(header.sizes);
  return view_of_storage(storage_tensor(elements, element_size(header.dtype)), header.dtype, header.sizes,
                         strides, 0);
}

NpyContent npy_content(const Tensor& tensor, const std::string& where) {
  VESTA_CHECK(tensor.defined(), where, ": the tensor is undefined");
  VESTA_CHECK(tensor.is_cpu(), where, ": the tensor has no data on the CPU but is on ",
              tensor.device().str());
  Tensor t = tensor.detach().resolve_conj().resolve_neg();
  const bool fortran = !t.is_contiguous() && t.is_non_overlapping_and_dense() &&
                       t.strides() == IntArrayRef(fortran_strides(t.sizes()));
  if (!fortran) t = t.contiguous();
  return {print_npy_header(t.dtype(), fortran, t.sizes(), where), std::move(t)};
}

}  // namespace vesta
