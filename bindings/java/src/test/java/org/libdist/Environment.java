// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Arrays;

/** The environment variables that native code reads, which Java cannot set: by environment.c. */
public final class Environment {
    static {
        System.load(System.getProperty("dist.environment"));
    }

    private Environment() {}

    /** @param value null: the variable is unset */
    public static void set(String name, String value) {
        set(ended(name), value == null ? null : ended(value));
    }

    private static byte[] ended(String text) {
        byte[] bytes = Texts.bytes(text);
        return Arrays.copyOf(bytes, bytes.length + 1);
    }

    private static native void set(byte[] name, byte[] value);
}
