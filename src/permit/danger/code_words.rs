//! Words that ordinary code is made of. Attributes count as well, so `os.system` is not hidden behind `os`.

use super::code::Family;

/// What most languages have.
const SHARED: &str = "\
    if else elif for in while and or not is True False None true false null nil return break continue \
    pass with as try except finally raise def class lambda import from print printf len length str int \
    float bool list dict set tuple sorted sort reversed reverse range enumerate zip map filter sum min \
    max abs round any all join split strip lstrip rstrip replace lower upper startswith endswith find \
    index count append extend items keys values get pop format chunks next iter do end then let const \
    var new function await async typeof undefined repr hex bin oct ord type isinstance sep file key \
    default encoding utf utf8 f r b rb";

/// Python's own, and attributes of its modules.
const PYTHON: &str = "\
    open read readlines readline write writelines close load loads dump dumps indent sort_keys \
    ensure_ascii argv stdin stdout stderr version version_info exit path exists isfile isdir basename \
    dirname getcwd listdir sep now today strftime isoformat timedelta utcnow timestamp Counter \
    defaultdict OrderedDict deque namedtuple most_common match search sub findall compile group groups \
    sqrt pi floor ceil log log2 log10 sin cos factorial gcd perf_counter sha256 sha1 md5 blake2b \
    hexdigest update encode decode reader DictReader Path read_text splitlines maxsize platform \
    executable name stem suffix parent parts st_size getsize mean median stdev randint choice uuid4 \
    chain groupby reduce partial pprint title zfill ljust rjust isdigit isalpha dataclass field Enum Any \
    Optional Decimal Fraction literal_eval write_text year month day weekday total_seconds date self \
    strptime setdefault intersection union add copy error Error Exception ValueError KeyError crc32 \
    hexlify dedent wrap fill ascii_letters digits seed shuffle sample abspath";

/// Perl's.
const PERL: &str = "\
    print say chomp lc uc substr sprintf my foreach unless BEGIN END local scalar push shift defined m s \
    y tr g i qw A F ARGV n x";

/// Ruby's.
const RUBY: &str = "\
    puts p pp each select to_s to_i to_f gsub sub chomp upcase downcase size first last uniq sum times \
    RUBY_VERSION inspect tr lines";

/// JavaScript's.
const NODE: &str = "\
    console log JSON parse stringify Math Object entries Array isArray Number parseInt parseFloat \
    version versions process argv toString slice Date toISOString sqrt PI includes push some every \
    forEach toUpperCase toLowerCase trim String Boolean isNaN node v8 platform arch";

/// PHP's.
const PHP: &str = "\
    echo print_r var_dump phpversion json_encode json_decode strlen count array implode explode \
    PHP_VERSION PHP_EOL date time";

/// Modules of python that touch neither processes nor the network, and no file that is not opened by name.
const MODULES: &str = "\
    json re math datetime collections itertools string random time textwrap statistics functools decimal \
    fractions csv hashlib operator pprint typing dataclasses enum unicodedata difflib bisect heapq \
    calendar uuid tomllib yaml numpy pandas sys os pathlib zlib binascii secrets ast html";

/// Whether python's module of this name is one of these.
pub(super) fn is_module(name: &str) -> bool {
    MODULES.split_whitespace().any(|m| m == name)
}

/// All words that code of a family may use.
pub(super) fn words(family: Family) -> impl Iterator<Item = &'static str> {
    let (own, modules) = match family {
        Family::Python => (PYTHON, MODULES),
        Family::Perl => (PERL, ""),
        Family::Ruby => (RUBY, ""),
        Family::Node => (NODE, ""),
        Family::Php => (PHP, ""),
        Family::Other => ("", ""),
    };
    [SHARED, own, modules].into_iter().flat_map(str::split_whitespace)
}
