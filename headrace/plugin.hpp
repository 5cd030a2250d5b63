// SPDX-License-Identifier: Apache-2.0
// Plug-ins in C++17: a class for each transform, and exceptions for errors.
//
//     #include <headrace/plugin.hpp>
//     namespace hp = headrace::plugin;
//
//     class Negative {
//      public:
//       static constexpr const char* name = "Negative";
//       static constexpr const char* help = "Inverts images of uint8.";
//       static constexpr uint32_t flags = HEADRACE_VALUES;
//       static constexpr uint32_t kinds = HEADRACE_IMAGE;
//       static constexpr uint32_t image_dtypes = HEADRACE_U8;
//       explicit Negative(const hp::Arguments&) {}
//       void run(hp::Record&, const hp::Field& in, hp::Field& out) const {
//         const auto from = in.image<uint8_t>();
//         const auto to = out.image<uint8_t>();
//         for (int64_t c = 0; c < from.channels; ++c)
//           for (int64_t y = 0; y < from.height; ++y)
//             for (int64_t x = 0; x < from.width; ++x) to(y, x, c) = uint8_t(255 - from(y, x, c));
//       }
//     };
//     HEADRACE_PLUGIN("mine", "1.0", Negative)
//
// A class may also have `static std::vector<hp::Param> params()`, and `void shape(hp::Record*,
// const hp::Field& in, hp::Shape& out) const`. headrace/plugin.h says what each means, and which
// threads call it. hp::BadRecord makes a record bad, any other exception ends the run; in the
// constructor, and in shape() without a record, any exception rejects the arguments.
#ifndef HEADRACE_PLUGIN_HPP_
#define HEADRACE_PLUGIN_HPP_

#include <array>
#include <cstring>
#include <deque>
#include <exception>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/plugin.h"

// Templates with static variables have hidden visibility: g++ exports such variables as unique
// symbols, one per name in a process, so two plug-ins with a class of the same name would share its
// tables.

namespace headrace {
namespace plugin {

// An error of this record: the loader's on_error= applies.
class BadRecord : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// ---- Parameters ---------------------------------------------------------------------------------

class Param {
 public:
  Param(const char* name, const char* help, int32_t type) {
    raw_.name = name;
    raw_.help = help;
    raw_.type = type;
  }
  Param range(double minimum, double maximum) && {
    raw_.minimum = minimum;
    raw_.maximum = maximum;
    return std::move(*this);
  }
  Param count(uint32_t least, uint32_t most) && {
    raw_.min_count = least;
    raw_.max_count = most;
    return std::move(*this);
  }
  Param choices(std::initializer_list<const char*> words) && {
    choices_ = words;
    return std::move(*this);
  }
  Param required() && {
    raw_.flags |= HEADRACE_PARAM_REQUIRED;
    return std::move(*this);
  }
  const char* name() const { return raw_.name; }
  // In the form of the table; valid until this object is moved or destroyed.
  headrace_param raw() const {
    headrace_param out = raw_;
    out.fallback.type = raw_.type;
    if (!numbers_.empty()) out.fallback.numbers = numbers_.data();
    if (!integers_.empty()) out.fallback.integers = integers_.data();
    if (!numbers_.empty()) out.fallback.count = uint32_t(numbers_.size());
    if (!integers_.empty()) out.fallback.count = uint32_t(integers_.size());
    out.choices = choices_.data();
    out.choice_count = uint32_t(choices_.size());
    return out;
  }

 private:
  friend Param flag(const char*, const char*, bool);
  friend Param integer(const char*, const char*, int64_t);
  friend Param number(const char*, const char*, double);
  friend Param text(const char*, const char*, const char*);
  friend Param integers(const char*, const char*, std::initializer_list<int64_t>);
  friend Param numbers(const char*, const char*, std::initializer_list<double>);

  headrace_param raw_{};
  std::vector<const char*> choices_;
  std::vector<int64_t> integers_;
  std::vector<double> numbers_;
};

// hp::number("strength", "How dark corners get.", 0.5).range(0, 1)
inline Param flag(const char* name, const char* help, bool fallback = false) {
  Param out(name, help, HEADRACE_PARAM_BOOL);
  out.raw_.fallback.integer = fallback;
  return out;
}
inline Param integer(const char* name, const char* help, int64_t fallback = 0) {
  Param out(name, help, HEADRACE_PARAM_INT);
  out.raw_.fallback.integer = fallback;
  return out;
}
inline Param number(const char* name, const char* help, double fallback = 0) {
  Param out(name, help, HEADRACE_PARAM_FLOAT);
  out.raw_.fallback.number = fallback;
  return out;
}
inline Param text(const char* name, const char* help, const char* fallback = "") {
  Param out(name, help, HEADRACE_PARAM_TEXT);
  out.raw_.fallback.text = fallback;
  return out;
}
inline Param integers(const char* name, const char* help,
                      std::initializer_list<int64_t> fallback = {}) {
  Param out(name, help, HEADRACE_PARAM_INTS);
  out.integers_ = fallback;
  return out;
}
inline Param numbers(const char* name, const char* help,
                     std::initializer_list<double> fallback = {}) {
  Param out(name, help, HEADRACE_PARAM_FLOATS);
  out.numbers_ = fallback;
  return out;
}

// The values of a transform's parameters, by name, checked by the engine.
class Arguments {
 public:
  Arguments(const headrace_value* values, const std::deque<Param>& params)
      : values_(values), params_(params) {}
  bool flag(const char* name) const { return of(name).integer != 0; }
  int64_t integer(const char* name) const { return of(name).integer; }
  double number(const char* name) const { return of(name).number; }
  std::string text(const char* name) const { return of(name).text; }
  std::vector<int64_t> integers(const char* name) const {
    const headrace_value& value = of(name);
    return {value.integers, value.integers + value.count};
  }
  std::vector<double> numbers(const char* name) const {
    const headrace_value& value = of(name);
    return {value.numbers, value.numbers + value.count};
  }

 private:
  const headrace_value& of(const char* name) const {
    for (size_t i = 0; i < params_.size(); ++i) {
      if (std::strcmp(params_[i].name(), name) == 0) return values_[i];
    }
    throw std::logic_error(std::string("no parameter is called ") + name);
  }
  const headrace_value* values_;
  const std::deque<Param>& params_;
};

// ---- A record -----------------------------------------------------------------------------------

// A record's random numbers; also a generator for the distributions of the standard library.
class Record {
 public:
  using result_type = uint32_t;
  explicit Record(const headrace_record* record) : record_(record) {}
  int64_t index() const { return record_->index; }
  int64_t position() const { return record_->position; }
  uint64_t seed() const { return record_->seed; }
  double uniform(double low = 0, double high = 1) { return headrace_uniform(record_, low, high); }
  int64_t below(int64_t n) { return headrace_below(record_, n); }
  bool coin(double probability) { return headrace_coin(record_, probability) != 0; }
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return 0xFFFFFFFFu; }
  result_type operator()() { return record_->bits(record_->draws); }

 private:
  const headrace_record* record_;
};

template <class T>
struct [[gnu::visibility("hidden")]] DTypeOf;
#define HEADRACE_DTYPE_OF(type, code)                                          \
  template <>                                                                  \
  struct [[gnu::visibility("hidden")]] DTypeOf<type> {                         \
    static constexpr headrace_dtype value{code, uint8_t(8 * sizeof(type)), 1}; \
  };
HEADRACE_DTYPE_OF(uint8_t, HEADRACE_UINT)
HEADRACE_DTYPE_OF(uint16_t, HEADRACE_UINT)
HEADRACE_DTYPE_OF(uint32_t, HEADRACE_UINT)
HEADRACE_DTYPE_OF(uint64_t, HEADRACE_UINT)
HEADRACE_DTYPE_OF(int8_t, HEADRACE_INT)
HEADRACE_DTYPE_OF(int16_t, HEADRACE_INT)
HEADRACE_DTYPE_OF(int32_t, HEADRACE_INT)
HEADRACE_DTYPE_OF(int64_t, HEADRACE_INT)
HEADRACE_DTYPE_OF(float, HEADRACE_FLOAT)
HEADRACE_DTYPE_OF(double, HEADRACE_FLOAT)
HEADRACE_DTYPE_OF(bool, HEADRACE_BOOL)
#undef HEADRACE_DTYPE_OF

template <class T>
bool is_of(headrace_dtype dtype) {
  const headrace_dtype wanted = DTypeOf<std::remove_const_t<T>>::value;
  return headrace_is(dtype, wanted.code, wanted.bits) != 0;
}

// An image's or mask's samples, by row, column and channel.
template <class T>
struct Image {
  T* data;
  int64_t height, width, channels;
  int64_t row_stride, column_stride, channel_stride;  // in samples
  T& operator()(int64_t y, int64_t x, int64_t c) const {
    return data[y * row_stride + x * column_stride + c * channel_stride];
  }
  // A row of one channel, whose samples are column_stride apart.
  T* row(int64_t y, int64_t c) const { return data + y * row_stride + c * channel_stride; }
};

// The numbers of a field other than an image or mask, dense.
template <class T>
struct Numbers {
  T* data;
  size_t size;
  T* begin() const { return data; }
  T* end() const { return data + size; }
  T& operator[](size_t i) const { return data[i]; }
};

// A field of a record. Data of an input is const.
class Field {
 public:
  explicit Field(headrace_field* field) : field_(field) {}
  int kind() const { return field_->kind; }
  std::string name() const { return field_->name; }
  headrace_dtype dtype() const { return field_->view.dtype; }
  int axes() const { return field_->view.ndim; }
  int64_t extent(int axis) const { return field_->view.shape[axis]; }
  int64_t canvas_height() const { return field_->canvas_height; }
  int64_t canvas_width() const { return field_->canvas_width; }
  std::string box_format() const { return field_->box_format; }
  int64_t sample_rate() const { return field_->sample_rate; }
  template <class T>
  bool is() const {
    return is_of<T>(dtype());
  }
  template <class T>
  Image<T> image() {
    return image_of<T>();
  }
  template <class T>
  Image<const T> image() const {
    return image_of<const T>();
  }
  // Like image(), for any dtype with samples of this size: for code that only moves samples.
  template <class T>
  Image<T> samples() {
    return samples_of<T>();
  }
  template <class T>
  Image<const T> samples() const {
    return samples_of<const T>();
  }
  template <class T>
  Numbers<T> numbers() {
    return numbers_of<T>();
  }
  template <class T>
  Numbers<const T> numbers() const {
    return numbers_of<const T>();
  }
  const headrace_field& raw() const { return *field_; }

 private:
  template <class T>
  T* data_of() const {
    if (!is<T>()) throw std::logic_error(name() + " has a different dtype");
    return static_cast<T*>(field_->view.data);
  }
  template <class T>
  Image<T> image_of() const {
    data_of<T>();
    return samples_of<T>();
  }
  template <class T>
  Image<T> samples_of() const {
    const headrace_view& view = field_->view;
    if (view.ndim != 3) throw std::logic_error(name() + " is no image");
    if (view.dtype.bits != 8 * sizeof(T)) throw std::logic_error(name() + " has a different dtype");
    return {static_cast<T*>(view.data),
            view.shape[0],
            view.shape[1],
            view.shape[2],
            view.strides[0],
            view.strides[1],
            view.strides[2]};
  }
  template <class T>
  Numbers<T> numbers_of() const {
    size_t size = 1;
    for (int i = 0; i < axes(); ++i) size *= size_t(extent(i));
    return {data_of<T>(), size};
  }
  headrace_field* field_;
};

// The result's shape and dtype, initially those of the input. -1: differs between records.
class Shape {
 public:
  explicit Shape(headrace_field* field) : view_(field->view) {}
  int64_t& operator[](int axis) { return view_.shape[axis]; }
  void set(std::initializer_list<int64_t> extents) {
    if (extents.size() > HEADRACE_MAX_AXES) throw std::logic_error("too many axes");
    view_.ndim = int32_t(extents.size());
    int at = 0;
    for (const int64_t extent : extents) view_.shape[at++] = extent;
  }
  template <class T>
  void set_dtype() {
    view_.dtype = DTypeOf<T>::value;
  }

 private:
  headrace_view& view_;
};

// ---- Tables -------------------------------------------------------------------------------------

template <class T, class = void>
struct HasParams : std::false_type {};
template <class T>
struct HasParams<T, std::void_t<decltype(T::params())>> : std::true_type {};
template <class T, class = void>
struct HasImageDtypes : std::false_type {};
template <class T>
struct HasImageDtypes<T, std::void_t<decltype(T::image_dtypes)>> : std::true_type {};
template <class T, class = void>
struct HasShape : std::false_type {};
template <class T>
struct HasShape<T, std::void_t<decltype(&T::shape)>> : std::true_type {};

// `code`: the status for exceptions other than BadRecord.
template <class Call>
int32_t caught(headrace_error* error, int32_t code, const Call& call) noexcept {
  try {
    call();
    return HEADRACE_OK;
  } catch (const BadRecord& bad) {
    return headrace_fail(error, HEADRACE_BAD_RECORD, "%s", bad.what());
  } catch (const std::exception& thrown) {
    return headrace_fail(error, code, "%s", thrown.what());
  } catch (...) {
    return headrace_fail(error, code, "an exception that is no std::exception");
  }
}

template <class T>
struct [[gnu::visibility("hidden")]] Transform {
  static const std::deque<Param>& params() {
    static const std::deque<Param> list = [] {
      std::deque<Param> out;
      if constexpr (HasParams<T>::value) {
        for (auto& param : T::params()) out.push_back(param);
      }
      return out;
    }();
    return list;
  }
  static const std::vector<headrace_param>& raw_params() {
    static const std::vector<headrace_param> list = [] {
      std::vector<headrace_param> out;
      for (const Param& param : params()) out.push_back(param.raw());
      return out;
    }();
    return list;
  }
  static int32_t create(const headrace_value* values, uint32_t, void** self,
                        headrace_error* error) noexcept {
    return caught(error, HEADRACE_BAD_ARGUMENTS,
                  [&] { *self = new T(Arguments(values, params())); });
  }
  static void destroy(void* self) noexcept { delete static_cast<T*>(self); }
  static int32_t shape(const void* self, const headrace_record* record, const headrace_field* input,
                       headrace_field* output, headrace_error* error) noexcept {
    return caught(error, record ? HEADRACE_FAILED : HEADRACE_BAD_ARGUMENTS, [&] {
      Record draws(record);
      const Field in(const_cast<headrace_field*>(input));
      Shape out(output);
      static_cast<const T*>(self)->shape(record ? &draws : nullptr, in, out);
    });
  }
  static int32_t run(const void* self, const headrace_record* record, const headrace_field* input,
                     headrace_field* output, headrace_error* error) noexcept {
    return caught(error, HEADRACE_FAILED, [&] {
      Record draws(record);
      const Field in(const_cast<headrace_field*>(input));
      Field out(output);
      static_cast<const T*>(self)->run(draws, in, out);
    });
  }
  static headrace_transform table() {
    headrace_transform out{};
    out.name = T::name;
    out.help = T::help;
    out.flags = T::flags;
    out.kinds = T::kinds;
    if constexpr (HasImageDtypes<T>::value) out.image_dtypes = T::image_dtypes;
    const std::vector<headrace_param>& list = raw_params();
    out.params = {list.data(), uint32_t(list.size()), uint32_t(sizeof(headrace_param))};
    out.create = create;
    out.destroy = destroy;
    out.run = run;
    if constexpr (HasShape<T>::value) out.shape = shape;
    return out;
  }
};

template <class... Ts>
[[gnu::visibility("hidden")]] const headrace_plugin* table_of(const char* name,
                                                              const char* version) noexcept {
  try {
    static const std::array<headrace_transform, sizeof...(Ts)> transforms = {
        Transform<Ts>::table()...};
    static const headrace_plugin plugin = [&] {
      headrace_plugin out{};
      out.abi = HEADRACE_PLUGIN_ABI;
      out.struct_size = sizeof out;
      out.name = name;
      out.version = version;
      out.transforms = {transforms.data(), uint32_t(sizeof...(Ts)),
                        uint32_t(sizeof(headrace_transform))};
      return out;
    }();
    return &plugin;
  } catch (...) {
    return nullptr;
  }
}

}  // namespace plugin
}  // namespace headrace

// HEADRACE_PLUGIN("mine", "1.0", Vignette, Negative): defines the library's only exported function.
#define HEADRACE_PLUGIN(name, version, ...)                                           \
  extern "C" HEADRACE_EXPORT const headrace_plugin* headrace_plugin_table(uint32_t) { \
    return headrace::plugin::table_of<__VA_ARGS__>(name, version);                    \
  }

#endif  // HEADRACE_PLUGIN_HPP_
