"""Hard texts of each language that a grammar reads, and what is to be found in them."""

# By language: a text, and its headings with the names in them.
SNIPPETS = {
    "c": (
        """
        EXPORT(int)
        parse_config(const char *path,
                     int flags)
        {
            return 0;
        }

        static __init int *names[] = { 0 };

        /* A point. */
        typedef struct {
            int x;
        } point_t;

        int (*handler(int signal))(int)
        {
            if (signal) { return 0; }
        }

        int declared(int only);
        """,
        ["parse_config", "point_t", "handler"],
        ["EXPORT(int) parse_config(const char *path,", "typedef struct", "int (*handler(int"],
    ),
    "c++": (
        """
        namespace a::b {
        template <class T>
        class API_EXPORT Reader final : public Base<T> {
         public:
          explicit Reader(int x) : x_(x) {}
          ~Reader() override {}
          bool operator==(const Reader& other) const { return true; }
          void declared();
         private:
          struct Row { int at; };
        };
        }  // namespace a::b

        template <> int Reader<int>::size() const {
          auto inner = [](int y) { return y; };
          return 1;
        }
        """,
        ["a::b", "Reader", "Reader", "~Reader", "operator==", "Row", "size"],
        [
            "namespace a::b",
            "template <class T> class API_EXPORT Reader final : public Base<T>",
            "explicit Reader(int x) : x_(x) {}",
            "template <> int Reader<int>::size() const",
        ],
    ),
    "csharp": (
        """
        namespace Tea {
            [Serializable]
            public sealed class Pot<T> : IPot where T : class {
                public string Name { get; set; }
                public Pot(int size) => Size = size;
                [Obsolete("no")]
                public async Task<int> PourAsync(
                    int cups)
                {
                    int Local(int x) { return x; }
                    return Local(cups);
                }
                public static Pot<T> operator +(Pot<T> a, int b) { return a; }
                void Declared();
            }
            interface IPot { void Boil(); }
        }
        """,
        ["Tea", "Pot", "Pot", "PourAsync", "Local", "+", "IPot"],
        ["public sealed class Pot<T> : IPot where T : class", "public async Task<int> PourAsync"],
    ),
    "go": (
        """
        package tea

        type (
        \tPot struct{ size int }
        \tBoiler interface{ Boil() error }
        )

        type Cups int

        // Pour pours.
        func (p *Pot) Pour(cups int) (int, error) {
        \tdone := func() {}
        \tdone()
        \treturn 0, nil
        }
        """,
        ["Pot", "Boiler", "Pour"],
        ["type ( Pot struct{ size int }", "Boiler interface{ Boil() error }"],
    ),
    "java": (
        """
        package tea;

        @Service
        public abstract class Pot<T extends Leaf> implements Boiler {
            private final Runnable task = new Runnable() {
                @Override public void run() { boil(); }
            };

            public Pot(int size) { this.size = size; }

            @Override
            @SuppressWarnings({"a", "b"})
            public <R> List<R> pour(
                    Map<String, R> cups) throws IOException {
                return null;
            }

            abstract void declared();

            enum Kind { GREEN { String name() { return "g"; } } }

            record Cup(int size) {}
        }
        """,
        ["Pot", "run", "Pot", "pour", "Kind", "name", "Cup"],
        ["public <R> List<R> pour", "public abstract class Pot<T extends Leaf> implements Boiler"],
    ),
    "javascript": (
        """
        export default class Pot extends Base {
          #size = 1;
          static async *pour(cups) { yield cups; }
          boil = () => { this.#size = 2; };
          get size() { return this.#size; }
        }
        module.exports.brew = async function (leaf) {
          return leaf;
        };
        const text = `
        function notThis() {
        }
        `;
        const api = {
          open: function (x) { return x; },
          close(x) { return x; },
        };
        """,
        ["Pot", "pour", "boil", "size", "brew", "open", "close"],
        ["module.exports.brew = async function (leaf)", "static async *pour(cups)"],
    ),
    "python": (
        """
        @app.route(
            "/x",
        )
        async def parse_config(
            path: str,
        ) -> None:
            '''Not this:

            def inner():
                pass
            '''

        class Reader(Base[int]):
            @property
            def size(self) -> int:
                return 1
        """,
        ["parse_config", "Reader", "size"],
        ["async def parse_config", "class Reader(Base[int])", "def size(self) -> int"],
    ),
    "rust": (
        """
        #[derive(Debug)]
        pub struct Pot<'a> { leaf: &'a str }

        impl<'a> Boil for Pot<'a> {
            /// Boils.
            pub(crate) async fn boil(&self) -> Result<(), Error>
            where
                Self: Sized,
            {
                let done = |x: i32| x;
                Ok(())
            }
        }

        trait Boil { fn boil(&self); }

        macro_rules! brew { ($x:expr) => { $x }; }

        mod declared;
        """,
        ["Pot", "Pot", "boil", "Boil", "brew"],
        ["pub struct Pot<'a> { leaf: &'a str }", "impl<'a> Boil for Pot<'a>"],
    ),
    "typescript": (
        """
        export abstract class Pot<T> implements Boiler {
          constructor(private readonly size: number) { super(); }
          protected boil = async (x: number): Promise<void> => {};
          abstract declared(): void;
          pour(): void;
          pour(cups?: number): void { return; }
        }
        export namespace Tea.Leaf { export interface Green { name: string } }
        export const brew = <T,>(leaf: T): T => leaf;
        declare function nowhere(): void;
        """,
        ["Pot", "constructor", "boil", "pour", "Leaf", "Green", "brew"],
        ["export abstract class Pot<T> implements Boiler", "pour(cups?: number): void { return; }"],
    ),
}
