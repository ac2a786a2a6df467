/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_python_tensors.i: tensors in Python, and DLPack's capsules. A list of tensors is None or a sequence; each is
 *
 *     anything that exports a buffer (PEP 3118), strided too: an array of NumPy's, array.array, memoryview
 *     (address, dtype, shape, strides or None, ...)   for memory that somebody else keeps; what follows is not read
 *
 * Buffers are held for the time of the call. The package keeps those that a call leaves in use.
 */
%{
namespace dist_swig {

static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "a buffer's shape is taken as it is");

/* By struct's letters, which the buffer protocol uses; 0 for what libdist has not.
   @every dtype but BF16: struct has no letter for it */
static dist_dtype dtype_of(const Py_buffer &buffer) {
  constexpr dist_dtype none{};
  const char *format = buffer.format ? buffer.format : "B";
  const bool little = PY_LITTLE_ENDIAN;
  if (*format == '@' || *format == '=' || *format == (little ? '<' : '>')) format++;
  if (format[0] == 'Z' && format[1] == 'f' && !format[2]) return DIST_COMPLEX64;
  if (!format[0] || format[1]) return none;
  static const dist_dtype kSigned[] = {none, DIST_I8, DIST_I16, none, DIST_I32, none, none, none, DIST_I64};
  static const dist_dtype kUnsigned[] = {none, DIST_U8, DIST_U16, none, DIST_U32, none, none, none, DIST_U64};
  if (buffer.itemsize > 8) return none;
  switch (*format) {
    case 'e': return DIST_F16;
    case 'f': return DIST_F32;
    case 'd': return DIST_F64;
    case '?': return DIST_BOOL;
    case 'b': case 'h': case 'i': case 'l': case 'q': case 'n': return kSigned[buffer.itemsize];
    case 'B': case 'H': case 'I': case 'L': case 'Q': case 'N': return kUnsigned[buffer.itemsize];
    default: return none;
  }
}

/* The tensors of a Python sequence, for the time of one call. */
class Views {
 public:
  Views() = default;
  Views(const Views &) = delete;
  Views &operator=(const Views &) = delete;
  ~Views() {
    for (Py_buffer &buffer : buffers_) PyBuffer_Release(&buffer);
  }

  /* false: with an exception set */
  bool fill(PyObject *sequence, bool writable) {
    PyObject *const items = PySequence_Fast(sequence, "a sequence of tensors is needed");
    if (!items) return false;
    const size_t n = (size_t)PySequence_Fast_GET_SIZE(items);
    tensors_.reserve(n);
    buffers_.reserve(n);
    numbers_.reserve(n * 2 * DIST_MAX_NDIM);
    bool filled = true;
    for (size_t i = 0; i < n && filled; i++) {
      PyObject *const item = PySequence_Fast_GET_ITEM(items, (Py_ssize_t)i);
      filled = PyTuple_Check(item) ? add_tuple(item) : add_buffer(item, writable);
    }
    Py_DECREF(items);
    return filled;
  }
  dist_tensor *get() { return tensors_.data(); }

 private:
  static bool refuse(dist_status status, const char *text) {
    dist_swig_raise(dist_fail(status, text));
    return false;
  }

  bool add_buffer(PyObject *item, bool writable) {
    buffers_.emplace_back(); /* where it stays: its shape may point into itself */
    Py_buffer &buffer = buffers_.back();
    if (PyObject_GetBuffer(item, &buffer, PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0))) {
      buffers_.pop_back();
      Py_buffer readable;
      if (writable && (PyErr_Clear(), PyObject_GetBuffer(item, &readable, PyBUF_STRIDES | PyBUF_FORMAT)) == 0) {
        PyBuffer_Release(&readable);
        return refuse(DIST_INVALID_ARGUMENT, "the array is read-only, and a result is to be written to it");
      }
      return false;
    }
    const dist_dtype dtype = dtype_of(buffer);
    if (!dtype) return refuse(DIST_INVALID_ARGUMENT, "elements of this type, or of this byte order, are not for libdist");
    if (buffer.ndim > DIST_MAX_NDIM)
      return refuse(DIST_INVALID_ARGUMENT, "a tensor has more than MAX_NDIM (16) dimensions");
    const int64_t *strides = nullptr;
    if (!PyBuffer_IsContiguous(&buffer, 'C')) {
      strides = numbers_.data() + numbers_.size();
      for (int d = 0; d < buffer.ndim; d++) {
        if (buffer.strides[d] % buffer.itemsize)
          return refuse(DIST_INVALID_ARGUMENT, "a tensor's strides are no multiples of its elements' size");
        numbers_.push_back(buffer.strides[d] / buffer.itemsize);
      }
    }
    add(buffer.buf, dtype, buffer.ndim, reinterpret_cast<const int64_t *>(buffer.shape), strides);
    return true;
  }

  bool add_tuple(PyObject *item) {
    if (PyTuple_GET_SIZE(item) < 4) {
      PyErr_SetString(PyExc_TypeError, "a tensor as numbers is (address, dtype, shape, strides or None)");
      return false;
    }
    void *const data = PyLong_AsVoidPtr(PyTuple_GET_ITEM(item, 0));
    const long dtype = PyLong_AsLong(PyTuple_GET_ITEM(item, 1));
    const size_t shape = numbers_.size();
    if (PyErr_Occurred() || !add_numbers(PyTuple_GET_ITEM(item, 2))) return false;
    const size_t ndim = numbers_.size() - shape;
    const bool strided = PyTuple_GET_ITEM(item, 3) != Py_None;
    if (strided && !add_numbers(PyTuple_GET_ITEM(item, 3))) return false;
    if (strided && numbers_.size() != shape + 2 * ndim)
      return refuse(DIST_INVALID_ARGUMENT, "a tensor has as many strides as dimensions");
    const int64_t *const sizes = numbers_.data() + shape;
    add(data, (dist_dtype)dtype, (int)ndim, sizes, strided ? sizes + ndim : nullptr);
    return true;
  }
  bool add_numbers(PyObject *tuple) {
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > DIST_MAX_NDIM)
      return refuse(DIST_INVALID_ARGUMENT, "a shape is a tuple of at most MAX_NDIM (16) numbers");
    for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(tuple); d++)
      numbers_.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, d)));
    return !PyErr_Occurred();
  }
  void add(void *data, dist_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides) {
    const dist_tensor tensor = {data, dtype, ndim, ndim ? shape : nullptr, ndim ? strides : nullptr};
    tensors_.push_back(tensor);
  }

  std::vector<Py_buffer> buffers_; /* as numbers_, never grows beyond what fill() reserved */
  std::vector<int64_t> numbers_; /* shapes and strides */
  std::vector<dist_tensor> tensors_;
};

/* A tensor as (address, dtype, shape, strides or None). */
static PyObject *tuple_of(const dist_tensor &tensor) {
  PyObject *const shape = PyTuple_New(tensor.ndim);
  PyObject *const strides = tensor.strides ? PyTuple_New(tensor.ndim) : Py_NewRef(Py_None);
  for (int32_t d = 0; shape && strides && d < tensor.ndim; d++) {
    PyTuple_SET_ITEM(shape, d, PyLong_FromLongLong(tensor.shape[d]));
    if (tensor.strides) PyTuple_SET_ITEM(strides, d, PyLong_FromLongLong(tensor.strides[d]));
  }
  return Py_BuildValue("(LiNN)", (long long)number(tensor.data), (int)tensor.dtype, shape, strides);
}

/* One row-major array of one dimension; of another kind nothing, and no exception. */
class Row {
 public:
  Row() = default;
  Row(const Row &) = delete;
  Row &operator=(const Row &) = delete;
  ~Row() {
    if (held_) PyBuffer_Release(&buffer_);
  }
  bool fill(PyObject *object) {
    if (PyObject_GetBuffer(object, &buffer_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE)) {
      PyErr_Clear();
      return false;
    }
    held_ = true;
    return buffer_.ndim == 1 && dtype();
  }
  dist_dtype dtype() const { return dtype_of(buffer_); }
  void *data() const { return buffer_.buf; }
  int64_t count() const { return buffer_.shape[0]; }

 private:
  Py_buffer buffer_;
  bool held_ = false;
};

}  // namespace dist_swig
%}
%typemap(in) const dist_tensor * (dist_swig::Views views) %{
  if ($input != Py_None) {
    if (!views.fill($input, false)) SWIG_fail;
    $1 = views.get();
  }
%}
%typemap(in) dist_tensor * (dist_swig::Views views) %{
  if ($input != Py_None) {
    if (!views.fill($input, true)) SWIG_fail;
    $1 = views.get();
  }
%}
/* libdist writes to the memory that these const descriptions refer to. */
%apply dist_tensor * { const dist_tensor *out, const dist_tensor *parameters };
%typemap(in, numinputs=0) dist_tensor *out_tensor (dist_tensor view), dist_tensor *out_spec (dist_tensor view) %{
  view = dist_tensor();
  $1 = &view;
%}
%typemap(argout) dist_tensor *out_tensor, dist_tensor *out_spec %{
  $result = dist_swig::append_output($result, dist_swig::tuple_of(view$argnum));
%}

/* Of quick_all_reduce() and its like: NotImplemented where the general call is needed. */
%typemap(in) (dist_dtype dtype, void *data, int64_t count) (dist_swig::Row row) %{
  if (!row.fill($input)) return Py_NewRef(Py_NotImplemented);
  $1 = row.dtype();
  $2 = row.data();
  $3 = row.count();
%}

/* ---- DLPack ------------------------------------------------------------------------------------------------------------- */
%inline %{
/** Takes the exceptions' factory: a function of the record that dist_swig_error() makes. */
static void set_error_factory(PyObject *factory) {
  Py_INCREF(factory);
  dist_swig_error_factory = factory;
}
%}
%{
/* dlpack.h's unversioned structs, as far as a capsule needs them. */
struct dist_swig_dlpack {
  void *data;
  int32_t device[2];
  int32_t ndim;
  uint32_t dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
  void *context;
  void (*deleter)(dist_swig_dlpack *);
};

/* Nobody has taken the tensor over. */
static void dist_swig_end_capsule(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;
  dist_swig_dlpack *const managed = static_cast<dist_swig_dlpack *>(PyCapsule_GetPointer(capsule, "dltensor"));
  if (managed->deleter) managed->deleter(managed);
}
%}
%inline %{
/** What dist_value_to_dlpack() gave, as a capsule; it ends with it, unless somebody takes it over. */
static PyObject *dlpack_capsule(int64_t managed) {
  return PyCapsule_New(dist_swig::pointer(managed), "dltensor", dist_swig_end_capsule);
}
/** The tensor of a capsule, for dist_value_from_dlpack(); dlpack_taken() says that it was taken over. */
static PyObject *dlpack_managed(PyObject *capsule) {
  void *const managed = PyCapsule_GetPointer(capsule, "dltensor");
  return managed ? PyLong_FromVoidPtr(managed) : nullptr;
}
static void dlpack_taken(PyObject *capsule) { PyCapsule_SetName(capsule, "used_dltensor"); }
%}
