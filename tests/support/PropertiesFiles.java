// java.util.Properties: a text in base64 (UTF-8) on each line of input, and on each line of output "error", or the pairs
// in the order of their names, each a name and a value in base64 (UTF-16, which also carries half of a pair), joined by
// spaces.  "-" stands for the empty text.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Properties;
import java.util.TreeMap;

public class PropertiesFiles {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(read(new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8)));
        }
    }

    private static String read(String text) throws Exception {
        var found = new Properties();
        try {
            found.load(new StringReader(text));
        } catch (IllegalArgumentException error) {
            return "error";
        }
        List<String> parts = new ArrayList<>();
        for (var pair : new TreeMap<Object, Object>(found).entrySet()) {
            parts.add(coded((String) pair.getKey()));
            parts.add(coded((String) pair.getValue()));
        }
        return String.join(" ", parts);
    }

    private static String coded(String text) {
        var bytes = new byte[2 * text.length()];
        for (int at = 0; at < text.length(); at++) {
            bytes[2 * at] = (byte) (text.charAt(at) >> 8);
            bytes[2 * at + 1] = (byte) text.charAt(at);
        }
        return bytes.length == 0 ? "-" : Base64.getEncoder().encodeToString(bytes);
    }
}
