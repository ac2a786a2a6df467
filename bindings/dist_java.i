/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_java.i: what is Java's own. A method that returns a status returns nothing or throws DistException;
 * memory comes as a direct buffer of java.nio, all of it from 0 to its capacity.
 */
%pragma(java) jniclassclassmodifiers="final class"
%pragma(java) jniclasscode=%{
  static {
    System.loadLibrary("dist_java");
  }
%}

/* No finalizers: Strategy frees by its Cleaner, the rest at the end of the call that made it. */
%typemap(javafinalize) SWIGTYPE ""

%typemap(jni) dist_status "void"
%typemap(jtype) dist_status "void"
%typemap(jstype) dist_status "void"
%typemap(javaout) dist_status "{ $jnicall; }"
%typemap(out, null="") dist_status { if ($1 != DIST_OK) dist_swig_throw(jenv, $1); }
%{
/* The record crosses as bytes: NewStringUTF takes Java's own UTF-8, and a tag may be cut inside a letter. */
static void dist_swig_throw(JNIEnv *env, dist_status status) {
  if (env->ExceptionCheck()) return;
  const std::string record = dist_swig_error(status);
  const jclass type = env->FindClass("org/libdist/DistException");
  if (!type) return;
  const jmethodID constructor = env->GetMethodID(type, "<init>", "([B)V");
  if (!constructor) return;
  const jbyteArray bytes = env->NewByteArray((jsize)record.size());
  if (!bytes) return;
  env->SetByteArrayRegion(bytes, 0, (jsize)record.size(), (const jbyte *)record.data());
  const jobject exception = env->NewObject(type, constructor, bytes);
  if (exception) env->Throw((jthrowable)exception);
}
%}

/* Text in: UTF-8 bytes, for the same reason; null is NULL. */
%typemap(jni) const char *UTF8 "jbyteArray"
%typemap(jtype) const char *UTF8 "byte[]"
%typemap(jstype) const char *UTF8 "byte[]"
%typemap(javain) const char *UTF8 "$javainput"
%typemap(in) const char *UTF8 (std::string text) {
  if ($input) {
    text.resize((size_t)jenv->GetArrayLength($input));
    jenv->GetByteArrayRegion($input, 0, (jsize)text.size(), (jbyte *)&text[0]);
    $1 = &text[0];
  }
}
%typemap(freearg) const char *UTF8 ""
%typemap(argout) const char *UTF8 ""
%apply const char *UTF8 { const char *tag, const char *text };

%typemap(jni) (void *data, int64_t count) "jobject"
%typemap(jtype) (void *data, int64_t count) "java.nio.Buffer"
%typemap(jstype) (void *data, int64_t count) "java.nio.Buffer"
%typemap(javain) (void *data, int64_t count) "$javainput"
%typemap(in, numinputs=1) (void *data, int64_t count) {
  $2 = $input ? jenv->GetDirectBufferCapacity($input) : -1;
  if ($2 < 0) {
    SWIG_JavaThrowException(jenv, SWIG_JavaIllegalArgumentException, "a direct buffer is needed");
    return $null;
  }
  $1 = jenv->GetDirectBufferAddress($input);
}

/* A net below Strategy's own catch: what still unwinds becomes this replica's failure, and its peers return. */
%feature("director:except") ReplicaBody::call {
  if (jenv->ExceptionCheck()) {
    jenv->ExceptionClear();
    return dist_fail(DIST_UNKNOWN, "the replica body threw outside its own handler");
  }
}
