// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** Converts numbers of types that Java does not have. */
final class Half {
    private Half() {}

    /** Converts a binary16 to a float, exactly. */
    static float toFloat(short bits) {
        int sign = (bits & 0x8000) << 16;
        int exponent = (bits >> 10) & 0x1f;
        int fraction = bits & 0x3ff;
        if (exponent == 0) { // zero, or a multiple of 2^-24
            float magnitude = fraction * 0x1p-24f;
            return sign == 0 ? magnitude : -magnitude;
        }
        int wide = exponent == 0x1f ? 0xff : exponent - 15 + 127;
        return Float.intBitsToFloat(sign | wide << 23 | fraction << 13);
    }

    /** Rounds to the nearest binary16, ties to even. */
    static short fromDouble(double value) {
        int sign = (int) (Double.doubleToRawLongBits(value) >>> 48) & 0x8000;
        double magnitude = Math.abs(value);
        if (Double.isNaN(magnitude)) {
            return (short) (sign | 0x7e00);
        }
        if (magnitude >= 65520) {
            return (short) (sign | 0x7c00);
        }
        int exponent = Math.max(Math.getExponent(magnitude), -14);
        long units =
                (long) Math.rint(Math.scalb(magnitude, 10 - exponent)); // 1024 .. 2048, fewer below 2^-14
        return (short) (sign | ((exponent + 14) << 10) + units);
    }

    /** Rounds to the nearest bfloat16, ties to even. */
    static short bfloat(float value) {
        int bits = Float.floatToRawIntBits(value);
        if (Float.isNaN(value)) {
            return (short) (bits >>> 16 | 0x40);
        }
        return (short) (bits + 0x7fff + (bits >>> 16 & 1) >>> 16);
    }

    /** Converts an unsigned 64-bit number to the nearest double. */
    static double unsigned(long bits) {
        return bits >= 0 ? bits : (double) (bits >>> 1 | bits & 1) * 2;
    }
}
