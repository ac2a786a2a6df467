/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_java.i: how arguments look in Java. Handles are long, arrays are long[], int[] and double[], out
 * parameters are arrays of one that the caller made. A method that returns a status returns nothing, or
 * throws DistException, made in the same native call. Texts are bytes, UTF-8: JNI's own strings are Java's
 * dialect of it, and a text of somebody else's would be damaged. Arrays are copied; only `void *data` is used
 * where it lies, a direct buffer.
 */
%pragma(java) jniclassclassmodifiers="final class"
%pragma(java) jniclasscode=%{
  static {
    NativeLoader.load();
  }
%}

/* Nothing in Java makes DLPack's structs. */
%ignore dist_value_from_dlpack;
%ignore dist_value_to_dlpack;

/* SWIG keeps the binding's classes by global references, which would keep their class loader for ever. Weak ones will
   do: while libdist has anything to call, Upcalls keeps the classes. */
%begin %{
#include <jni.h>
#define NewGlobalRef NewWeakGlobalRef
%}

/* No finalizers: the hand-written layer deletes at the end of a call, or by its Cleaner. */
%typemap(javafinalize) SWIGTYPE ""

%{
static_assert(sizeof(void *) == sizeof(jlong), "a handle is a long");

namespace dist_swig {

static void get(JNIEnv *env, jlongArray from, jsize n, void *to) {
  env->GetLongArrayRegion(from, 0, n, (jlong *)to);
}
static void get(JNIEnv *env, jintArray from, jsize n, void *to) {
  env->GetIntArrayRegion(from, 0, n, (jint *)to);
}
static void get(JNIEnv *env, jdoubleArray from, jsize n, void *to) {
  env->GetDoubleArrayRegion(from, 0, n, (jdouble *)to);
}
static void get(JNIEnv *env, jbyteArray from, jsize n, void *to) {
  env->GetByteArrayRegion(from, 0, n, (jbyte *)to);
}
static void set(JNIEnv *env, jlongArray to, jsize n, const void *from) {
  env->SetLongArrayRegion(to, 0, n, (const jlong *)from);
}
static void set(JNIEnv *env, jintArray to, jsize n, const void *from) {
  env->SetIntArrayRegion(to, 0, n, (const jint *)from);
}
static void set(JNIEnv *env, jdoubleArray to, jsize n, const void *from) {
  env->SetDoubleArrayRegion(to, 0, n, (const jdouble *)from);
}
static void set(JNIEnv *env, jbyteArray to, jsize n, const void *from) {
  env->SetByteArrayRegion(to, 0, n, (const jbyte *)from);
}

/* What an array of Java's holds, for the time of a call. Copied, for a collective may wait for long, and a
   pinned array would keep the garbage collector waiting with it. Short ones need no malloc. */
template <class T> class Copied {
 public:
  Copied() : size_(0) {}
  Copied(const Copied &) = delete;
  Copied &operator=(const Copied &) = delete;

  /* NULL for null. Ends with a zero, as texts have to. */
  template <class Array> T *in(JNIEnv *env, Array array) {
    T *const data = room(env, array);
    if (data && size_ > 0) get(env, array, (jsize)size_, data);
    return data;
  }
  /* As many zeros as the array is long, to be written; back() gives them to the array. */
  template <class Array> T *room(JNIEnv *env, Array array) {
    if (!array) return nullptr;
    size_ = (size_t)env->GetArrayLength(array);
    T *data = few_;
    if (size_ >= kFew) {
      many_.resize(size_ + 1);
      data = many_.data();
    }
    std::memset((void *)data, 0, (size_ + 1) * sizeof(T));
    return data;
  }
  template <class Array> void back(JNIEnv *env, Array array) {
    if (array) set(env, array, (jsize)size_, size_ >= kFew ? many_.data() : few_);
  }
  size_t size() const { return size_; }

 private:
  enum { kFew = 64 };
  T few_[kFew];
  std::vector<T> many_;
  size_t size_;
};

class CopiedTexts {
 public:
  const char **in(JNIEnv *env, jobjectArray array) {
    if (!array) return nullptr;
    const jsize n = env->GetArrayLength(array);
    pointers_.push_back(nullptr);
    for (jsize i = 0; i < n; i++) {
      const jbyteArray text = (jbyteArray)env->GetObjectArrayElement(array, i);
      Copied<char> bytes;
      const char *const data = bytes.in(env, text);
      texts_.emplace_back(data ? data : "");
      pointers_.back() = data ? texts_.back().c_str() : nullptr;
      pointers_.push_back(nullptr);
      env->DeleteLocalRef(text);
    }
    return pointers_.data();
  }

 private:
  std::deque<std::string> texts_;
  std::vector<const char *> pointers_;
};

static jbyteArray new_bytes(JNIEnv *env, const char *text, size_t size) {
  if (!text) return nullptr;
  const jbyteArray bytes = env->NewByteArray((jsize)size);
  if (bytes) env->SetByteArrayRegion(bytes, 0, (jsize)size, (const jbyte *)text);
  return bytes;
}
static jbyteArray new_bytes(JNIEnv *env, const char *text) {
  return new_bytes(env, text, text ? std::strlen(text) : 0);
}

}  // namespace dist_swig
%}

/* A Java type that is the same on all three levels. */
%define %dist_type(PATTERN, JNI, JAVA)
%typemap(jni) PATTERN "JNI"
%typemap(jtype) PATTERN "JAVA"
%typemap(jstype) PATTERN "JAVA"
%typemap(javain) PATTERN "$javainput"
%typemap(javaout) PATTERN "{ return $jnicall; }"
%typemap(freearg) PATTERN ""
%typemap(argout) PATTERN ""
%enddef

/* ---- Statuses ------------------------------------------------------------------------------------------ */
%{
static void dist_swig_throw(JNIEnv *env, dist_status status) {
  if (env->ExceptionCheck()) return;
  const std::string record = dist_swig_error(status);
  const jclass type = env->FindClass("org/libdist/DistException");
  if (!type) return;
  const jmethodID constructor = env->GetMethodID(type, "<init>", "([B)V");
  if (!constructor) return;
  const jbyteArray bytes = dist_swig::new_bytes(env, record.data(), record.size());
  if (!bytes) return;
  const jobject exception = env->NewObject(type, constructor, bytes);
  if (exception) env->Throw((jthrowable)exception);
}
%}
%typemap(jni) dist_status "void"
%typemap(jtype) dist_status "void"
%typemap(jstype) dist_status "void"
%typemap(javaout) dist_status "{ $jnicall; }"
%typemap(out, null="") dist_status ""
/* Last of all: out parameters are written before. */
%typemap(ret) dist_status { if ($1 != DIST_OK) dist_swig_throw(jenv, $1); }
%dist_type(dist_status status, jint, int)
%typemap(in) dist_status status %{ $1 = (dist_status)$input; %}

/* ---- Handles and tokens -------------------------------------------------------------------------------- */
%define %dist_handle(TYPE)
%dist_type(TYPE *, jlong, long)
%typemap(in) TYPE * %{ $1 = ($1_ltype)dist_swig::pointer($input); %}
%typemap(out) TYPE * %{ $result = dist_swig::number($1); %}
%dist_type(TYPE *const *, jlongArray, long[])
%typemap(in) TYPE *const * (dist_swig::Copied<void *> handles) %{ $1 = ($1_ltype)handles.in(jenv, $input); %}
/* one that is written, or a list of them */
%dist_type(TYPE **, jlongArray, long[])
%typemap(in) TYPE ** (dist_swig::Copied<void *> handles) %{ $1 = ($1_ltype)handles.room(jenv, $input); %}
%typemap(argout) TYPE ** %{ handles$argnum.back(jenv, $input); %}
%enddef
%dist_handle(dist_strategy)
%dist_handle(dist_replica)
%dist_handle(dist_group)
%dist_handle(dist_work)
%dist_handle(dist_request)
%dist_handle(dist_completions)
%dist_handle(dist_batcher)
%dist_handle(dist_batch)
%dist_handle(dist_versions)
%dist_handle(dist_value)
%dist_handle(dist_variable)
%dist_handle(dist_dataset)
%dist_handle(dist_iterator)
%dist_handle(dist_cross_device)
%dist_handle(dist_cluster_resolver)
%dist_handle(dist_network)
%dist_handle(dist_budget)
%dist_handle(dist_metric)
%dist_handle(dist_checkpoint)
%dist_handle(dist_preemption_handler)
%dist_handle(dist_rpc_server)
%dist_handle(dist_rpc_client)
%dist_handle(dist_remote_value)
%dist_handle(dist_server)
%dist_handle(dist_closure)
%dist_handle(dist_coordinator)
%dist_handle(dist_topology)
%dist_handle(dist_device_assignment)
%dist_handle(dist_destination)
%dist_handle(dist_cancel)
%apply dist_value ** { void ** };
%apply dist_value * { void * }; /* dist_value_object(): a token */

/* Memory is libdist's own. */
%typemap(in, numinputs=0) const dist_allocator *allocator "$1 = nullptr;"

%define %dist_token(PATTERN, CODE...)
%dist_type(PATTERN, jlong, long)
%typemap(in, numinputs=1) PATTERN { const int64_t token = $input; CODE }
%enddef

/* ---- Numbers ------------------------------------------------------------------------------------------- */
%apply long long { uint64_t };
%apply long long { size_t };

%define %dist_numbers(TYPE, JNI, JAVA)
%dist_type(const TYPE *, JNI, JAVA)
%typemap(in) const TYPE * (dist_swig::Copied<TYPE> numbers) %{ $1 = ($1_ltype)numbers.in(jenv, $input); %}
%dist_type(TYPE *, JNI, JAVA)
%typemap(in) TYPE * (dist_swig::Copied<TYPE> numbers) %{ $1 = ($1_ltype)numbers.room(jenv, $input); %}
%typemap(argout) TYPE * %{ numbers$argnum.back(jenv, $input); %}
%enddef
%dist_numbers(int32_t, jintArray, int[])
%dist_numbers(int64_t, jlongArray, long[])
%dist_numbers(double, jdoubleArray, double[])
%dist_numbers(size_t, jlongArray, long[])
%apply int32_t * { dist_reduce_op *out_op, dist_preemption_state *out_state };
%apply const int64_t * { const long long * };

/* ---- Tensors and memory -------------------------------------------------------------------------------- */
%dist_type(dist_tensor *, jlongArray, long[])
%typemap(in) dist_tensor * (dist_swig::Copied<int64_t> numbers, dist_swig::Tensors tensors) {
  const int64_t *const packed = numbers.in(jenv, $input);
  $1 = tensors.unpack(packed, numbers.size());
}
/* one that is written: room for dist_swig::kTensorNumbers */
%define %dist_tensor_out(PATTERN)
%dist_type(PATTERN, jlongArray, long[])
%typemap(in) PATTERN (dist_tensor view) %{
  view = dist_tensor();
  $1 = &view;
%}
%typemap(argout) PATTERN %{
  {
    int64_t numbers[dist_swig::kTensorNumbers] = {0};
    dist_swig::pack(view$argnum, numbers);
    if ($input) jenv->SetLongArrayRegion($input, 0, dist_swig::kTensorNumbers, (const jlong *)numbers);
  }
%}
%enddef
%dist_tensor_out(dist_tensor *out_tensor)
%dist_tensor_out(dist_tensor *out_spec)

/* A direct buffer, from its first element; the number of elements is told by another argument. */
%dist_type(void *data, jobject, java.nio.Buffer)
%typemap(in) void *data %{ $1 = $input ? jenv->GetDirectBufferAddress($input) : nullptr; %}

/* ---- Texts --------------------------------------------------------------------------------------------- */
%dist_type(const char *, jbyteArray, byte[])
%typemap(in) const char * (dist_swig::Copied<char> text) %{ $1 = text.in(jenv, $input); %}
%typemap(out) const char * %{ $result = dist_swig::new_bytes(jenv, $1); %}
%typemap(javadirectorin) const char * "$jniinput"
%typemap(directorin, descriptor="[B", noblock=1) const char * {
  $input = dist_swig::new_bytes(jenv, $1);
  Swig::LocalRefGuard $1_refguard(jenv, $input);
}
%dist_type(const char *const *, jobjectArray, byte[][])
%typemap(in) const char *const * (dist_swig::CopiedTexts texts) %{ $1 = ($1_ltype)texts.in(jenv, $input); %}
/* Out: one that a library's object owns, and one that is written into bytes. */
%dist_type(const char **, jobjectArray, byte[][])
%typemap(in) const char ** (char *text) %{
  text = nullptr;
  $1 = ($1_ltype)&text;
%}
%typemap(argout) const char ** %{
  if ($input && text$argnum) jenv->SetObjectArrayElement($input, 0, dist_swig::new_bytes(jenv, text$argnum));
%}
%dist_type(char *out_name, jbyteArray, byte[])
%typemap(in) char *out_name (dist_swig::Copied<char> text) %{ $1 = text.room(jenv, $input); %}
%typemap(argout) char *out_name %{ text$argnum.back(jenv, $input); %}
%apply char *out_name { char *out_text };

/* ---- Memory and buffers, for Java alone ---------------------------------------------------------------- */
%{
namespace dist_swig {
struct Memory {
  void *data;
  int64_t size_bytes;
};

/* @every dtype */
static int64_t dtype_bytes(dist_dtype dtype) {
  switch (dtype) {
    case DIST_I8:
    case DIST_U8:
    case DIST_BOOL: return 1;
    case DIST_F16:
    case DIST_BF16:
    case DIST_I16:
    case DIST_U16: return 2;
    case DIST_F32:
    case DIST_I32:
    case DIST_U32: return 4;
    case DIST_F64:
    case DIST_I64:
    case DIST_U64:
    case DIST_COMPLEX64:
    default: return 8;
  }
}
}  // namespace dist_swig
%}
%dist_type(dist_swig::Memory, jobject, java.nio.ByteBuffer)
%typemap(out) dist_swig::Memory %{ $result = jenv->NewDirectByteBuffer($1.data, $1.size_bytes); %}
%inline %{
/** Where a direct buffer begins; its position does not count. */
static int64_t buffer_address(void *data) { return dist_swig::number(data); }

/** A direct buffer over memory of somebody else's. */
static dist_swig::Memory buffer_at(int64_t address, int64_t size_bytes) {
  return dist_swig::Memory{dist_swig::pointer(address), size_bytes};
}

/** The bytes of all tensors in a value, for who accounts for memory that the collector does not see. */
static int64_t value_bytes(dist_value *value) {
  const int32_t kind = dist_value_kind_of(value);
  if (kind != DIST_VALUE_TENSOR && kind != DIST_VALUE_SHARDED) {
    int64_t bytes = 0;
    for (size_t i = 0; i < dist_value_size(value); i++) bytes += value_bytes(dist_value_item(value, i));
    return bytes;
  }
  dist_tensor tensor;
  if (dist_value_tensor(value, &tensor) != DIST_OK) return 0;
  int64_t bytes = dist_swig::dtype_bytes(tensor.dtype);
  for (int32_t d = 0; d < tensor.ndim; d++) bytes *= tensor.shape[d];
  return bytes;
}

/** Pointer `index` of an array of pointers. */
static int64_t pointer_at(int64_t pointers, int32_t index) {
  return dist_swig::number(static_cast<void *const *>(dist_swig::pointer(pointers))[index]);
}
%}

/* ---- Calls back: a net below the hand-written layer's own handlers ------------------------------------- */
%{
/* Whether something was thrown out of a call back; it is gone then, and told as this thread's error. */
static bool dist_swig_threw(JNIEnv *env) {
  if (!env->ExceptionCheck()) return false;
  env->ExceptionClear();
  (void)dist_fail(DIST_UNKNOWN, "a function of Java's threw outside its own handler");
  return true;
}
%}
%define %dist_except(METHOD, RESULT)
%feature("director:except") Callbacks::METHOD { if (dist_swig_threw(jenv)) return RESULT; }
%enddef
%dist_except(replica, DIST_UNKNOWN)
%dist_except(values, -DIST_UNKNOWN)
%dist_except(merge, -DIST_UNKNOWN)
%dist_except(update, -DIST_UNKNOWN)
%dist_except(source, -DIST_UNKNOWN)
%dist_except(file_source, -DIST_UNKNOWN)
%dist_except(dataset, -DIST_UNKNOWN)
%dist_except(dataset_reduce, -DIST_UNKNOWN)
%dist_except(value, -DIST_UNKNOWN)
%dist_except(initial, -DIST_UNKNOWN)
%dist_except(method, -DIST_UNKNOWN)
%dist_except(closure, -DIST_UNKNOWN)
%dist_except(create_state, -DIST_UNKNOWN)
%dist_except(destroy_state, )
%dist_except(warm_up, DIST_UNKNOWN)
%dist_except(step, DIST_UNKNOWN)
%dist_except(update_variables, DIST_UNKNOWN)
%dist_except(partition, DIST_UNKNOWN)
%dist_except(loop, )
%dist_except(reduce, )
%dist_except(apply, )
%dist_except(reduce_components, DIST_UNKNOWN)
%dist_except(broadcast_copies, DIST_UNKNOWN)
%dist_except(gather_components, DIST_UNKNOWN)
%dist_except(log, )
%dist_except(release, )
