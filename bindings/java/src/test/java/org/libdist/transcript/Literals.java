// SPDX-License-Identifier: Apache-2.0

package org.libdist.transcript;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Function;
import org.libdist.DType;
import org.libdist.Tensor;
import org.libdist.Tensors;
import org.libdist.Value;
import org.libdist.ValueKind;
import org.libdist.Variable;

/** How transcripts write texts, tensors and values. */
final class Literals {
    private static final String PLAIN = "_./:,-[]<>?!*'=;+";

    private Literals() {}

    static String text(String literal) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (int i = 2; i < literal.length(); i++) { // after "t:"
            if (literal.charAt(i) == '%') {
                bytes.write(Integer.parseInt(literal.substring(i + 1, i + 3), 16));
                i += 2;
            } else {
                bytes.write(literal.charAt(i));
            }
        }
        return bytes.toString(StandardCharsets.UTF_8);
    }

    static String ofText(String text) {
        if (text == null) {
            return "-";
        }
        StringBuilder literal = new StringBuilder("t:");
        for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
            char c = (char) (b & 0xff);
            boolean plain = c < 128 && (Character.isLetterOrDigit(c) || PLAIN.indexOf(c) >= 0);
            literal.append(plain ? String.valueOf(c) : String.format("%%%02X", (int) c));
        }
        return literal.toString();
    }

    /** The items of "(a b c)", which are no arrays themselves. */
    static List<String> items(String array) {
        String inside = array.substring(1, array.length() - 1);
        return inside.isEmpty() ? List.of() : List.of(inside.split(" "));
    }

    static <T> String array(List<T> items, Function<T, String> literal) {
        return "(" + String.join(" ", items.stream().map(literal).toList()) + ")";
    }

    private static String name(DType dtype) {
        return dtype == DType.COMPLEX64 ? "c64" : dtype.toString();
    }

    /** A tensor: "f32:2:00..."; of "f32:2" zeros. */
    static Tensor tensor(String literal) {
        String[] parts = literal.split(":", -1);
        DType dtype = null;
        for (DType each : DType.values()) {
            dtype = name(each).equals(parts[0]) ? each : dtype;
        }
        String[] sizes = parts[1].isEmpty() ? new String[0] : parts[1].split(",");
        long[] shape = new long[sizes.length];
        for (int d = 0; d < shape.length; d++) {
            shape[d] = Long.parseLong(sizes[d]);
        }
        return parts.length == 2 ? Tensor.zeros(dtype, shape)
                                 : Tensors.copyOf(dtype, HexFormat.of().parseHex(parts[2]), shape);
    }

    static String of(Tensor tensor) {
        return of(tensor.dtype(), tensor.shape(), Tensors.toBytes(tensor));
    }

    static String of(DType dtype, long[] shape, byte[] bytes) {
        List<String> sizes = new ArrayList<>();
        for (long size : shape) {
            sizes.add(Long.toString(size));
        }
        quiet(dtype, bytes);
        return name(dtype) + ":" + String.join(",", sizes) + ":" + HexFormat.of().formatHex(bytes);
    }

    /** All NaNs are one. */
    private static void quiet(DType dtype, byte[] bytes) {
        ByteBuffer all = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        for (int at = 0; at < bytes.length; at += dtype.sizeBytes()) {
            if (dtype == DType.F32 && Float.isNaN(all.getFloat(at))) {
                all.putInt(at, 0x7fc00000);
            } else if (dtype == DType.F64 && Double.isNaN(all.getDouble(at))) {
                all.putLong(at, 0x7ff8L << 48);
            } else if (dtype == DType.F16 && (all.getShort(at) & 0x7fff) > 0x7c00) {
                all.putShort(at, (short) 0x7e00);
            } else if (dtype == DType.BF16 && (all.getShort(at) & 0x7fff) > 0x7f80) {
                all.putShort(at, (short) 0x7fc0);
            }
        }
    }

    /** What a value is; variables by their names. */
    static String tree(Value value, Function<Variable, String> names) {
        ValueKind kind = value.kind();
        switch (kind) {
            case TENSOR:
                return of(value.tensor());
            case NONE:
                return "none";
            case OBJECT:
                return "object";
            case TEXT:
                return ofText(value.text());
            case VARIABLE:
                return names.apply(value.variable().orElseThrow());
            case SHARDED:
                return sharded(value);
            default:
                StringBuilder tree = new StringBuilder("(" + kind.name().toLowerCase(java.util.Locale.ROOT));
                for (int i = 0; i < value.size(); i++) {
                    tree.append(kind == ValueKind.DICT ? " " + ofText(value.key(i)) : "");
                    tree.append(" ").append(tree(value.item(i), names));
                }
                return tree.append(")").toString();
        }
    }

    /** A tensor that is divided: the whole, and what each logical device has. */
    private static String sharded(Value value) {
        StringBuilder text = new StringBuilder("(sharded ").append(of(value.tensor()));
        for (int device = 0; device < value.partition().numLogicalDevices(); device++) {
            Value part = value.item(device);
            text.append(" ").append(part.kind() == ValueKind.NONE ? "none" : of(part.tensor()));
        }
        return text.append(")").toString();
    }
}
