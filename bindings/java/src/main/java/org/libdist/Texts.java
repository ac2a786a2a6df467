// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;

/** Converts texts to and from UTF-8 bytes for native code. */
final class Texts {
    private Texts() {}

    /** @param name the name of the argument, for the exception if it is null */
    static byte[] bytes(String text, String name) {
        return bytes(Objects.requireNonNull(text, name));
    }

    /** Throws if the text contains a NUL, because native texts end at a NUL. */
    static byte[] bytes(String text) {
        if (text.indexOf('\0') >= 0) {
            throw new IllegalArgumentException("a text has a NUL inside: \"" + shown(text) + "\"");
        }
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String shown(String text) {
        return escaped(text.substring(0, Math.min(text.length(), 40)));
    }

    private static String escaped(String text) {
        return text.replace("\0", "\\0");
    }

    /** Converts a message, which can come from anywhere: a NUL in it is shown as \0. */
    static byte[] words(String text) {
        return bytes(escaped(text));
    }

    /** Converts a text; null stays null. */
    static byte[] orNull(String text) {
        return text == null ? null : bytes(text);
    }

    /** Converts bytes to a text; null stays null. */
    static String of(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    /** Returns the text that native code has written, up to its terminating zero. */
    static String written(byte[] bytes) {
        int length = 0;
        while (length < bytes.length && bytes[length] != 0) {
            length++;
        }
        return new String(bytes, 0, length, StandardCharsets.UTF_8);
    }

    /** @param name the name of the argument, for the exception if it is null */
    static byte[][] all(List<String> texts, String name) {
        return all(Objects.requireNonNull(texts, name));
    }

    static byte[][] all(List<String> texts) {
        return texts.stream().map(Texts::bytes).toArray(byte[][] ::new);
    }
}
