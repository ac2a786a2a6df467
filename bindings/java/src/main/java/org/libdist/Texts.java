// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;

/** Texts as they cross: UTF-8 bytes. */
final class Texts {
    private Texts() {}

    /** @param name the argument's, for who gave null */
    static byte[] bytes(String text, String name) {
        return bytes(Objects.requireNonNull(text, name));
    }

    /** C's texts end at a NUL: one that has a NUL inside would be another one there. */
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

    /** Of words for people, which come from anywhere: a NUL in them is shown, as \0. */
    static byte[] words(String text) {
        return bytes(escaped(text));
    }

    /** null stays null. */
    static byte[] orNull(String text) {
        return text == null ? null : bytes(text);
    }

    /** null stays null. */
    static String of(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    /** What native code has written, up to the zero at its end. */
    static String written(byte[] bytes) {
        int length = 0;
        while (length < bytes.length && bytes[length] != 0) {
            length++;
        }
        return new String(bytes, 0, length, StandardCharsets.UTF_8);
    }

    /** @param name the argument's, for who gave null */
    static byte[][] all(List<String> texts, String name) {
        return all(Objects.requireNonNull(texts, name));
    }

    static byte[][] all(List<String> texts) {
        return texts.stream().map(Texts::bytes).toArray(byte[][] ::new);
    }
}
