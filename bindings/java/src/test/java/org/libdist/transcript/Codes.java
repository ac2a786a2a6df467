// SPDX-License-Identifier: Apache-2.0

package org.libdist.transcript;

import java.lang.reflect.Field;

/** The numbers that C has for the constants of enums, which are in transcripts. */
final class Codes {
    private Codes() {}

    /** A constant's number. */
    static int of(Enum<?> constant) {
        try {
            Field code = constant.getDeclaringClass().getDeclaredField("code");
            code.setAccessible(true);
            return code.getInt(constant);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    /** The constant with a number; null if there is none. */
    static <E extends Enum<E>> E find(Class<E> type, int code) {
        for (E each : type.getEnumConstants()) {
            if (of(each) == code) {
                return each;
            }
        }
        return null;
    }

    /** The constant with a number, or with 0, which is the default of options, the first one. */
    static <E extends Enum<E>> E get(Class<E> type, int code) {
        return code == 0 ? type.getEnumConstants()[0] : find(type, code);
    }
}
