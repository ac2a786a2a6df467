// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/tensor.hpp: views of host memory, for reading (const_tensor) or also for writing (tensor). A vector, array
// or span converts to one implicitly; nothing is copied, and memory is allocated only for a list that is created in the
// call (see tensor_list).
//
//     std::vector<float> in{1, 2, 3, 4, 5, 6}, out(24);
//     replica.all_reduce(dist::reduce_op::sum, in);             // a tensor of 6 elements
//     replica.all_gather(dist::const_tensor(in.data(), {2, 3}), dist::tensor(out.data(), {8, 3}));

#ifndef DIST_HPP_TENSOR_HPP
#define DIST_HPP_TENSOR_HPP

#include <array>
#include <complex>
#include <initializer_list>

#include "error.hpp"

namespace dist {

// C++ types that correspond to a dtype: numbers and bool, not characters.
template <class T>
inline constexpr bool is_element = std::is_same_v<T, bool> || std::is_same_v<T, float> ||
                                   std::is_same_v<T, double> || std::is_same_v<T, std::complex<float>> ||
                                   (std::is_integral_v<T> && sizeof(T) <= 8 && !std::is_same_v<T, char> &&
                                    !std::is_same_v<T, wchar_t> && !std::is_same_v<T, char16_t> &&
                                    !std::is_same_v<T, char32_t>);

// @every dtype but F16, BF16: C++17 has no type for them
template <class T>
constexpr dist_dtype dtype_of() {
  static_assert(is_element<T>, "libdist has no dtype for this element type; make a tensor of a dist_tensor");
  if constexpr (std::is_same_v<T, bool>)
    return DIST_BOOL;
  else if constexpr (std::is_same_v<T, float>)
    return DIST_F32;
  else if constexpr (std::is_same_v<T, double>)
    return DIST_F64;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return DIST_COMPLEX64;
  else {
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1)
      return is_signed ? DIST_I8 : DIST_U8;
    else if constexpr (sizeof(T) == 2)
      return is_signed ? DIST_I16 : DIST_U16;
    else if constexpr (sizeof(T) == 4)
      return is_signed ? DIST_I32 : DIST_U32;
    else
      return is_signed ? DIST_I64 : DIST_U64;
  }
}

namespace detail {
template <class T>
inline constexpr bool is_read_only = is_element<std::remove_const_t<T>> &&std::is_const_v<T>;
template <class T>
using enable_if_element = std::enable_if_t<is_element<std::remove_const_t<T>>>;
template <class T>
using enable_if_writable = std::enable_if_t<is_element<T> && !std::is_const_v<T>>;
template <class T>
using enable_if_read_only = std::enable_if_t<is_read_only<T>>;
template <class Container>
using pointee = std::remove_pointer_t<decltype(std::declval<Container &>().data())>;
}  // namespace detail

// ---- One tensor ------------------------------------------------------------------------------------------

// A read-only view of memory that stores its own shape, so that it can be created within one expression.
class const_tensor {
 public:
  template <class T, class = detail::enable_if_element<T>>
  const_tensor(T *data, std::initializer_list<int64_t> shape)
      : const_tensor(data, dtype_of<std::remove_const_t<T>>(), shape.begin(), shape.size()) {}
  template <class T, class = detail::enable_if_element<T>>
  const_tensor(T *data, const std::vector<int64_t> &shape)
      : const_tensor(data, dtype_of<std::remove_const_t<T>>(), shape.data(), shape.size()) {}
  template <class T, class = detail::enable_if_element<T>>
  const_tensor(T *data, std::size_t elements) : const_tensor(data, {static_cast<int64_t>(elements)}) {}
  // With a dtype that has no C++ type: DIST_F16, DIST_BF16.
  const_tensor(const void *data, dist_dtype dtype, std::initializer_list<int64_t> shape)
      : const_tensor(data, dtype, shape.begin(), shape.size()) {}
  // From a vector, array or span: one dimension.
  template <class Container, class = detail::enable_if_element<detail::pointee<Container>>>
  const_tensor(Container &elements)  // NOLINT: meant to be implicit
      : const_tensor(elements.data(), elements.size()) {}
  // From a view that the library returned: the shape is copied, so it may outlive the object it came from; the data may
  // not.
  explicit const_tensor(const dist_tensor &view)
      : const_tensor(view.data, view.dtype, view.shape, static_cast<std::size_t>(view.ndim)) {
    if (view.strides == nullptr) return;
    for (int32_t i = 0; i < view.ndim; ++i) strides_[static_cast<std::size_t>(i)] = view.strides[i];
    has_strides_ = true;
  }
  // The same memory with other strides, in elements, one for each dimension.
  const_tensor strided(std::initializer_list<int64_t> strides) const { return with_strides(*this, strides); }

  // For the C API. The struct is const if the memory is.
  [[nodiscard]] const dist_tensor get() const noexcept {
    return view();
  }  // NOLINT: const, so that no tensor can be made from it
  dist_dtype dtype() const noexcept { return dtype_; }
  int32_t ndim() const noexcept { return ndim_; }
  int64_t size(int32_t dim) const { return shape_.at(static_cast<std::size_t>(dim)); }
  int64_t elements() const noexcept {
    int64_t product = 1;
    for (int32_t i = 0; i < ndim_; ++i) product *= shape_[static_cast<std::size_t>(i)];
    return product;
  }
  // The data as T; throws if the dtype differs.
  template <class T>
  const T *data() const {
    return typed<T>();
  }

 protected:
  const_tensor(const void *data, dist_dtype dtype, const int64_t *shape, std::size_t ndim)
      : data_(const_cast<void *>(data)), dtype_(dtype), ndim_(static_cast<int32_t>(ndim)) {
    if (ndim > shape_.size())
      throw error(DIST_INVALID_ARGUMENT, "a tensor has at most DIST_MAX_NDIM dimensions");
    for (std::size_t i = 0; i < ndim; ++i) shape_[i] = shape[i];
  }
  template <class View>
  static View with_strides(View view, std::initializer_list<int64_t> strides) {
    const_tensor &self = view;
    if (strides.size() != static_cast<std::size_t>(self.ndim_))
      throw error(DIST_INVALID_ARGUMENT, "a tensor has one stride for each dimension");
    std::size_t i = 0;
    for (const int64_t stride : strides) self.strides_[i++] = stride;
    self.has_strides_ = true;
    return view;
  }
  dist_tensor view() const noexcept {
    return {data_, dtype_, ndim_, ndim_ == 0 ? nullptr : shape_.data(),
            has_strides_ ? strides_.data() : nullptr};
  }
  template <class T>
  T *typed() const {
    if (dtype_ != dtype_of<std::remove_const_t<T>>())
      throw error(DIST_INVALID_ARGUMENT, "the tensor has another dtype");
    return static_cast<T *>(data_);
  }

 private:
  void *data_;
  dist_dtype dtype_;
  int32_t ndim_;
  bool has_strides_ = false;
  std::array<int64_t, DIST_MAX_NDIM> shape_{};
  std::array<int64_t, DIST_MAX_NDIM> strides_{};
};

// A view of memory that can also be written, so never of const memory. A tensor converts to a const_tensor, never the
// other way. As with a pointer, constness of the tensor itself does not make the memory const.
class tensor : public const_tensor {
 public:
  template <class T, class = detail::enable_if_writable<T>>
  tensor(T *data, std::initializer_list<int64_t> shape) : const_tensor(data, shape) {}
  template <class T, class = detail::enable_if_writable<T>>
  tensor(T *data, const std::vector<int64_t> &shape) : const_tensor(data, shape) {}
  template <class T, class = detail::enable_if_writable<T>>
  tensor(T *data, std::size_t elements) : const_tensor(data, elements) {}
  tensor(void *data, dist_dtype dtype, std::initializer_list<int64_t> shape)
      : const_tensor(data, dtype, shape) {}
  template <class Container, class = detail::enable_if_writable<detail::pointee<Container>>>
  tensor(Container &elements) : const_tensor(elements) {}  // NOLINT: meant to be implicit
  explicit tensor(dist_tensor &view) : const_tensor(view) {}
  explicit tensor(dist_tensor &&view) : const_tensor(view) {}

  // Deleted for const containers: use a const_tensor.
  template <class T, class Shape, class = detail::enable_if_read_only<T>>
  tensor(T *data, Shape &&shape) = delete;
  template <class T, class = detail::enable_if_read_only<T>, class = void>
  tensor(T *data, std::initializer_list<int64_t> shape) = delete;
  tensor(const void *data, dist_dtype dtype, std::initializer_list<int64_t> shape) = delete;
  template <class Container, class = detail::enable_if_read_only<detail::pointee<Container>>, class = void>
  tensor(Container &elements) = delete;
  explicit tensor(const dist_tensor &view) = delete;
  explicit tensor(const const_tensor &view) = delete;

  tensor strided(std::initializer_list<int64_t> strides) const { return with_strides(*this, strides); }
  [[nodiscard]] dist_tensor get() const noexcept { return view(); }
  template <class T>
  T *data() const {
    return typed<T>();
  }
};

// ---- Several ---------------------------------------------------------------------------------------------

// A list of tensors for a repeated call: it stores the structs that the C API reads.
template <class View>
class basic_tensor_list {
 public:
  explicit basic_tensor_list(std::vector<View> list) : list_(std::move(list)) { look(); }
  basic_tensor_list(std::initializer_list<View> list) : list_(list) { look(); }
  basic_tensor_list(const basic_tensor_list &other) : list_(other.list_) { look(); }
  basic_tensor_list(basic_tensor_list &&other) noexcept = default;  // the viewed storage moves along
  basic_tensor_list &operator=(basic_tensor_list other) noexcept {
    list_.swap(other.list_);
    views_.swap(other.views_);
    return *this;
  }
  ~basic_tensor_list() = default;

  std::size_t size() const noexcept { return list_.size(); }
  const View &operator[](std::size_t index) const { return list_.at(index); }
  [[nodiscard]] const dist_tensor *get() const noexcept { return views_.data(); }

 private:
  void look() {
    views_.reserve(list_.size());
    for (const View &each : list_) views_.push_back(each.get());
  }

  std::vector<View> list_;
  std::vector<dist_tensor> views_;
};
using tensor_list = basic_tensor_list<tensor>;
using const_tensor_list = basic_tensor_list<const_tensor>;

// Passed by a member that does not give, or does not receive, tensors.
struct nothing_t {};
inline constexpr nothing_t nothing{};

// Parameter type of functions that read tensors: accepts one tensor, a list, or nothing. Exists only during the call.
class const_tensors {
 public:
  const_tensors(nothing_t) noexcept {}             // NOLINT: these are meant to be implicit
  const_tensors(const const_tensor &one) noexcept  // NOLINT
      : view_(one.get()), views_(&view_), size_(1), given_(true) {}
  template <class Container, class = detail::enable_if_element<detail::pointee<Container>>>
  const_tensors(Container &elements) noexcept  // NOLINT
      : length_(static_cast<int64_t>(elements.size())),
        view_{const_cast<void *>(static_cast<const void *>(elements.data())),
              dtype_of<std::remove_const_t<detail::pointee<Container>>>(), 1, &length_, nullptr},
        views_(&view_),
        size_(1),
        given_(true) {}
  template <class View>
  const_tensors(const basic_tensor_list<View> &list) noexcept  // NOLINT
      : views_(list.get()), size_(list.size()), given_(true) {}
  const_tensors(const std::vector<const_tensor> &list) { look(list); }  // NOLINT
  const_tensors(const std::vector<tensor> &list) { look(list); }        // NOLINT
  // {a, b, ...}: allocates memory, like a vector of tensors; a tensor_list created once does not.
  template <class... More, class = std::enable_if_t<(std::is_convertible_v<More &&, const_tensor> && ...)>>
  const_tensors(const const_tensor &first, const const_tensor &second, More &&...more)
      : made_{first, second, const_tensor(std::forward<More>(more))...} {
    look(made_);
  }
  const_tensors(const const_tensors &) = delete;
  const_tensors &operator=(const const_tensors &) = delete;
  ~const_tensors() = default;

  bool given() const noexcept { return given_; }
  std::size_t size() const noexcept { return size_; }
  const dist_tensor *in() const noexcept { return views_; }

 private:
  template <class View>
  void look(const std::vector<View> &list) {
    many_.reserve(list.size());
    for (const View &each : list) many_.push_back(each.get());
    views_ = many_.data();
    size_ = many_.size();
    given_ = true;
  }

  int64_t length_ = 0;
  dist_tensor view_{};
  std::vector<const_tensor> made_;
  std::vector<dist_tensor> many_;
  const dist_tensor *views_ = nullptr;
  std::size_t size_ = 0;
  bool given_ = false;
};

// Parameter type of functions that write tensors.
class tensors : public const_tensors {
 public:
  tensors(nothing_t) noexcept : const_tensors(nothing) {}      // NOLINT: these are meant to be implicit
  tensors(const tensor &one) noexcept : const_tensors(one) {}  // NOLINT
  tensors(const tensor_list &list) noexcept : const_tensors(list) {}  // NOLINT
  tensors(const std::vector<tensor> &list) : const_tensors(list) {}   // NOLINT
  template <class Container, class = detail::enable_if_writable<detail::pointee<Container>>>
  tensors(Container &elements) noexcept : const_tensors(elements) {}  // NOLINT
  template <class... More, class = std::enable_if_t<(std::is_convertible_v<More &&, tensor> && ...)>>
  tensors(const tensor &first, const tensor &second, More &&...more)
      : const_tensors(first, second, tensor(std::forward<More>(more))...) {}

  // Deleted for const containers: pass those to functions that take const_tensors.
  tensors(const const_tensor &one) = delete;
  tensors(const const_tensor_list &list) = delete;
  tensors(const std::vector<const_tensor> &list) = delete;
  template <class Container, class = detail::enable_if_read_only<detail::pointee<Container>>, class = void>
  tensors(Container &elements) = delete;

  // libdist writes only to the data.
  dist_tensor *out() const noexcept { return const_cast<dist_tensor *>(in()); }
};

// ---- Operators -------------------------------------------------------------------------------------------

// @every operator but USER: reduce_with() stands for it
enum class reduce_op : int32_t {
  sum = DIST_REDUCE_SUM,
  mean = DIST_REDUCE_MEAN,
  min = DIST_REDUCE_MIN,
  max = DIST_REDUCE_MAX,
  prod = DIST_REDUCE_PROD
};

// The operator of a reduction: a reduce_op, or the host's own operator (see reduce_with()).
class reduction {
 public:
  reduction(reduce_op op) noexcept : op_(static_cast<dist_reduce_op>(op)) {}  // NOLINT: meant to be implicit
  explicit reduction(dist_reduce_fn call, void *data = nullptr, dist_dtype only = {},
                     std::size_t element_bytes = 0) noexcept
      : op_(DIST_REDUCE_USER), dtype_(only), fn_(call), user_data_(data), element_bytes_(element_bytes) {}

  dist_reduce_op op() const noexcept { return op_; }
  dist_dtype dtype() const noexcept { return dtype_; }  // the only dtype that it accepts; 0 = any
  dist_reduce_fn fn() const noexcept { return fn_; }
  void *user_data() const noexcept { return user_data_; }
  std::size_t element_bytes() const noexcept { return element_bytes_; }  // 0 = size of the dtype

 private:
  dist_reduce_op op_;
  dist_dtype dtype_{};
  dist_reduce_fn fn_ = nullptr;
  void *user_data_ = nullptr;
  std::size_t element_bytes_ = 0;
};

// Applies fn(T, T) to each pair of elements. T is the type of a dtype, or a struct that consists of several elements of
// the tensors (bytes, for example); libdist never splits such a struct. fn is called from several threads, and nothing
// can catch its exceptions: declare it noexcept. It must live as long as the collective: give it a name if the
// collective is asynchronous or planned.
template <class T, class Fn>
reduction reduce_with(Fn &&fn) noexcept {
  using plain = std::remove_reference_t<Fn>;
  static_assert(std::is_nothrow_invocable_r_v<T, plain &, T, T>,
                "the operator runs inside the library: declare it noexcept");
  static_assert(std::is_trivially_copyable_v<T>, "elements travel as bytes");
  constexpr auto only = [] {
    if constexpr (is_element<T>)
      return dtype_of<T>();
    else
      return dist_dtype{0};
  }();
  return reduction(
      [](void *acc, const void *in, int64_t count, dist_dtype, void *user_data) {
        auto &op = *static_cast<plain *>(user_data);
        auto *left = static_cast<T *>(acc);
        const auto *right = static_cast<const T *>(in);
        for (int64_t i = 0; i < count; ++i) left[i] = op(left[i], right[i]);
      },
      detail::address_of(fn), only, is_element<T> ? 0 : sizeof(T));
}

// The same for fn(void *acc, const void *in, int64_t count, dist_dtype): acc[i] = op(acc[i], in[i]), on elements of
// the dtype or of `element_bytes`.
template <class Fn>
reduction reduce_with(Fn &&fn, std::size_t element_bytes = 0) noexcept {
  using plain = std::remove_reference_t<Fn>;
  static_assert(std::is_nothrow_invocable_v<plain &, void *, const void *, std::size_t, dist_dtype>,
                "the operator runs inside the library: declare it noexcept");
  return reduction([](void *acc, const void *in, int64_t count, dist_dtype dtype,
                      void *user_data) { (*static_cast<plain *>(user_data))(acc, in, count, dtype); },
                   detail::address_of(fn), {}, element_bytes);
}

// The size of an element in bytes; 0 for an unknown dtype.
inline std::size_t dtype_size(dist_dtype dtype) noexcept { return dist_dtype_size(dtype); }
// The number of elements of a tensor of the C API; -1 if its shape is invalid.
inline int64_t num_elements(const dist_tensor &tensor) noexcept { return dist_tensor_num_elements(&tensor); }

}  // namespace dist
#endif  // DIST_HPP_TENSOR_HPP
