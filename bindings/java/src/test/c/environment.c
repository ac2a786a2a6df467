/* SPDX-License-Identifier: Apache-2.0
 *
 * environment.c: sets an environment variable of the process, for Java's tests (Environment.java).
 */
#define _POSIX_C_SOURCE 200112L /* setenv() */
#include <jni.h>
#include <stdlib.h>

/* Both end with a zero; value NULL: the variable is unset. */
JNIEXPORT void JNICALL Java_org_libdist_Environment_set(JNIEnv* env, jclass type, jbyteArray name,
                                                        jbyteArray value) {
  (void)type;
  jbyte* const key = (*env)->GetByteArrayElements(env, name, NULL);
  if (!key) return;
  if (!value) {
    unsetenv((const char*)key);
  } else {
    jbyte* const text = (*env)->GetByteArrayElements(env, value, NULL);
    if (text) {
      setenv((const char*)key, (const char*)text, 1);
      (*env)->ReleaseByteArrayElements(env, value, text, JNI_ABORT);
    }
  }
  (*env)->ReleaseByteArrayElements(env, name, key, JNI_ABORT);
}
