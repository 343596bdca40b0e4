// Kafka's own parser of sasl.jaas.config: a text in base64 on each line of input, and on each line of output "error", or
// the entries, each a module, a flag and its options, in base64 and joined by spaces; entries are joined by '|'.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.TreeMap;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;

public class Jaas {
    public static void main(String[] arguments) throws Exception {
        var made = Class.forName("org.apache.kafka.common.security.JaasConfig")
            .getDeclaredConstructor(String.class, String.class);
        made.setAccessible(true);
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String text = new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8);
            System.out.println(parsed(made, text));
        }
    }

    private static String parsed(java.lang.reflect.Constructor<?> made, String text) throws Exception {
        Configuration found;
        try {
            found = (Configuration) made.newInstance("KafkaClient", text);
        } catch (java.lang.reflect.InvocationTargetException error) {
            return "error";
        }
        List<String> entries = new ArrayList<>();
        for (AppConfigurationEntry entry : found.getAppConfigurationEntry("KafkaClient")) {
            if (entry.getOptions().containsKey(null)) return "error"; // a number as a name: nobody can ask for it
            List<String> parts = new ArrayList<>();
            parts.add(coded(entry.getLoginModuleName()));
            for (var option : new TreeMap<>(entry.getOptions()).entrySet()) {
                parts.add(coded(option.getKey()));
                parts.add(coded(String.valueOf(option.getValue())));
            }
            entries.add(String.join(" ", parts));
        }
        return String.join("|", entries);
    }

    private static String coded(String text) {
        return Base64.getEncoder().encodeToString((text + "\n").getBytes(StandardCharsets.UTF_8));
    }
}
