//! Text that speaks to an agent rather than states a fact.

use std::sync::LazyLock;

use regex::RegexSet;

/// Phrases that speak to an agent rather than state a fact. Matched against [`plain`] text.
const PHRASES: &[&str] = &[
    // Replaces the instructions of the agent.
    r"\b(ignore|disregard|forget|override|bypass|neglect)\b.{0,40}\b(instructions?|prompts?|rules?|guidelines?|directives?|context|polic(y|ies)|constraints?|safety)\b",
    r"\b(ignore|disregard|forget)\b.{0,20}\b(everything|all|anything)\b.{0,30}\b(above|before|previous|said|told)\b",
    r"\b(new|updated|real|actual|secret|hidden) (system )?(instructions?|prompt|task|objective|goal|orders?) ?(is|are|:|for)",
    r"\byour (new|real|true|actual|only|primary) (task|goal|objective|role|job|purpose|instructions?|identity)\b",
    r"\byou are (now|no longer)\b",
    r"\b(pretend|act|behave|roleplay) (to be|as|like) (if |though )?(you|an?|the)\b.{0,40}\b(admin|root|developer mode|dan|unrestricted|system|without)\b",
    r"\b(developer|god|jailbreak|dan|sudo) mode\b",
    r"\bfrom now on,? (you|always|never|every|all|whenever|the (assistant|agent|model|ai))\b",
    r"\b(the |any |every |all )?(ai|assistant|agent|model|llm|claude|chatgpt|copilot|tiller)s?( agents?| assistants?)? (must|should|shall|has to|have to|needs? to|is to|are to|will always|may never)\b",
    r"\b(as an|dear|attention|note to( the)?|instructions? (for|to)( the)?|important:? for|message (for|to)( the)?) (ai|assistant|agent|model|llm|coding agent|language model)s?\b",
    r"\b(when|whenever|if|every time|each time) (the |a )?(user|person|human|developer) (asks?|says?|requests?|wants?|mentions?|types?)\b.{0,80}\b(instead|reply|respond|answer with|tell (them|him|her|the)|say that|(also )?(run|execute|delete|insert|add) )",
    // Hides something from the person.
    r"\b(do not|don't|dont|never|without) (tell|inform|mention|reveal|show|notify|alert|ask|telling|informing|asking|notifying|mentioning|showing)\b.{0,30}\b(user|person|human|developer|anyone|them|this|it)\b",
    r"\b(secretly|silently|quietly|covertly)\b.{0,60}\b(send|upload|post|run|execute|install|copy|commit)\b|\bhidden from the (user|person)\b|\bkeep (this|it) (secret|hidden)\b",
    // Loosens rules.
    r"\b(auto-?approve|approve (all|every|any)|always (approve|allow|accept|confirm|say yes)|skip (the )?(approval|confirmation|permission)s?|without (any )?(approval|confirmation|permission)s?)\b",
    r"\b(disable|turn off|switch off|deactivate|weaken|remove) (the |all |any )?(sandbox|permissions?|approvals?|guards?|safety|hooks?|confirmations?|restrictions?)\b",
    r"(permissions\.yaml|\.tiller/|tiller/config\.toml|\.bashrc|\.zshrc|\.profile|authorized_keys|\.git/hooks|\.git/config|crontab)\b.{0,60}\b(add|append|write|edit|change|put|set|insert)\b",
    r"\b(add|append|write|edit|change|put|insert)\b.{0,80}(permissions\.yaml|\.tiller/|tiller/config\.toml|\.bashrc|\.zshrc|\.profile|authorized_keys|\.git/hooks|\.git/config|crontab)\b",
    r"\b(full|admin|root|yolo) (access|mode|permissions?) (is|are|has been|was) (granted|allowed|enabled|approved)\b",
    r"\b(the )?(user|person|owner|admin(istrator)?|developer) (has |have |already )+(approved|allowed|authorized|authorised|granted|agreed|consented)\b",
    // Runs or sends something.
    r"\b(curl|wget|fetch|iwr|invoke-webrequest)\b.{0,120}\|\s*(sudo )?(ba|z|da|k)?sh\b|\b(iex|invoke-expression)\b",
    r"\b(send|post|upload|exfiltrate|forward|leak|email|transmit|copy)\b.{0,60}\b(keys?|tokens?|secrets?|passwords?|credentials?|env(ironment)? variables?|\.env|\.ssh|id_rsa|cookies?|conversation|history|source code|contents?|files?)\b.{0,60}\b(to|at|via|with)\b.{0,40}(https?:|\bwww\.|@|\bserver\b|\bwebhook\b|\.(com|net|org|io|dev|xyz)\b)",
    r"\b(base64|b64) ?(-d|--decode|decode).{0,40}\|\s*(ba|z)?sh\b",
    r"\b(before|after|on) (each|every|any|all) .{0,60}\b(curl|wget|ssh|scp|nc|ncat|eval|iex)\b",
    r"\brm -rf? [/~]",
    r"\b(send|post|upload|forward) (it|this|that|them|all|everything) to (https?:|www\.)|\bexfiltrat(e|es|ing)\b|\bjailbreak\b",
    // The form of prompts.
    r"</?(system|assistant|user|human|instructions?|system-reminder|system_prompt|important|admin)\b[^>]{0,40}>",
    r"\[/?(inst|system|assistant)\]|<\|(im_start|im_end|system|user|assistant|endoftext)\|>|<<sys>>",
    r"^ *#{0,4} ?(system|assistant|instructions?|system prompt|human)( prompt| message| note| override)? ?:",
    r"\b(begin|end|start) (of )?(system )?(prompt|instructions?)\b",
    // The same in other languages.
    r"\b(ignoriere|vergiss|missachte)\b.{0,40}\b(anweisungen|regeln|vorgaben|anleitung)\b",
    r"\b(ignor(e|ez|er)|oublie[zr]?)\b.{0,40}\b(instructions|consignes|regles)\b",
    r"\b(ignora|olvida|omite)\b.{0,40}\b(instrucciones|reglas|indicaciones)\b",
    r"\b(ignore|esqueca|ignora|dimentica)\b.{0,40}\b(instrucoes|regras|istruzioni|regole)\b",
    r"(忽略|无视|忘记|無視).{0,20}(指令|指示|规则|提示|命令)",
    r"(игнорируй|забудь).{0,40}(инструкци|правил|указани)",
    r"(以前|これまで|前)の.{0,10}(指示|命令).{0,10}(無視|忘れ)",
];

#[expect(clippy::expect_used, reason = "a test compiles the constant patterns")]
static INSTRUCTIONS: LazyLock<RegexSet> =
    LazyLock::new(|| RegexSet::new(PHRASES).expect("constant patterns"));

/// Whether a text reads like an instruction to an agent.
pub(super) fn instructs(text: &str) -> bool {
    let plain = plain(text);
    // Letters with something between them: `i g n o r e`, `i.g.n.o.r.e`.
    let joined = join_letters(&plain);
    INSTRUCTIONS.is_match(&plain)
        || INSTRUCTIONS.is_match(&plain.replace('_', ""))
        || joined.is_some_and(|joined| INSTRUCTIONS.is_match(&joined))
}

/// A text as it is compared: small letters, look-alikes as the ASCII letters that they resemble, accents and emphasis away, one
/// blank between words.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().flat_map(char::to_lowercase) {
        let c = match c {
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
            'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' | 'ā' | 'ɑ' => 'a',
            'è' | 'é' | 'ê' | 'ë' | 'ē' => 'e',
            'ì' | 'í' | 'î' | 'ï' | 'ı' => 'i',
            'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' => 'o',
            'ù' | 'ú' | 'û' | 'ü' => 'u',
            'ç' => 'c',
            'ñ' => 'n',
            '’' | '‘' | '`' | '´' => '\'',
            '\u{0300}'..='\u{036f}' | '*' => continue,
            c if c.is_whitespace() => ' ',
            c => c,
        };
        if !(c == ' ' && out.ends_with(' ')) {
            out.push(c);
        }
    }
    // Cyrillic and Greek letters within words of Latin ones.
    let words = out.split(' ').map(|word| {
        if word.chars().any(|c| c.is_ascii_alphabetic()) && !word.is_ascii() {
            word.chars().map(look_alike).collect::<String>()
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn look_alike(c: char) -> char {
    match c {
        'а' | 'α' => 'a',
        'е' | 'ε' => 'e',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'с' => 'c',
        'у' | 'υ' => 'y',
        'х' | 'χ' => 'x',
        'і' | 'ι' => 'i',
        'ѕ' => 's',
        'ј' => 'j',
        'ԁ' => 'd',
        'һ' => 'h',
        'ν' => 'v',
        'в' => 'b',
        'т' | 'τ' => 't',
        'м' => 'm',
        'к' | 'κ' => 'k',
        'н' => 'h',
        c => c,
    }
}

/// The text with runs of single letters joined; `None`: it has none of six or more.
fn join_letters(text: &str) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    let is_letter = |at: usize| chars.get(at).is_some_and(|c| c.is_alphabetic());
    let (mut out, mut at, mut joined) = (String::new(), 0, false);
    while at < chars.len() {
        let mut end = at;
        // A letter, one separator, a letter, and so on.
        while is_letter(end) && !is_letter(end + 1) && is_letter(end + 2) && !is_letter(end + 3) {
            end += 2;
        }
        if end >= at + 10 {
            out.extend(chars[at..=end].iter().filter(|c| c.is_alphabetic()));
            joined = true;
            at = end + 1;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    joined.then_some(out)
}
