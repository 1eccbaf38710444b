//! English words for what is asked of the person.

use crate::models::Text;
use crate::view::Ask;

use super::Words;

impl Words<'_> {
    pub(super) fn ask(&self, ask: &Ask) -> String {
        match ask {
            Ask::Asset { role, example: Some(example) } => {
                format!("Which {}? For example {example}.", self.text(role))
            }
            Ask::Asset { role, example: None } => format!("Which {}?", self.text(role)),
            Ask::Input { input } => format!("What is the {}?", self.text(input)),
            Ask::ConfirmAbandon { label } => {
                format!("Abandon {}? It cannot be taken up again.", self.text(label))
            }
            Ask::Declined => {
                "Not recorded. Tell me when it is done, or report a problem.".to_owned()
            }
            Ask::NotConfirmed => {
                "Nothing was recorded. Tell me what it should be instead.".to_owned()
            }
            Ask::NotChosen => "Nothing was done. Tell me which one you mean.".to_owned(),
            Ask::Next { prompt } => format!("Next: {}", self.text(prompt)),
            Ask::Recheck { prompt, value } => self.recheck(prompt, value.as_deref()),
            Ask::ReadyToFinish { results } if results.is_empty() => {
                "All steps are done, but no result fits. Report a problem.".to_owned()
            }
            Ask::ReadyToFinish { results } => {
                format!("All steps are done. Finish as {}?", self.list(results, "or"))
            }
            Ask::CheckAgain { prompt, value: Some(value) } => {
                format!("Check again, it was {value}: {}", self.text(prompt))
            }
            Ask::CheckAgain { prompt, value: None } => {
                format!("Check again: {}", self.text(prompt))
            }
            Ask::Finish { results } => {
                format!("Everything is done; finish as {}?", self.list(results, "or"))
            }
            Ask::Choose { question, decisions } => {
                let (question, decisions) = (self.text(question), self.list(decisions, "or"));
                match question.strip_suffix('?') {
                    Some(asked) if !decisions.is_empty() => format!("{asked}: {decisions}?"),
                    Some(_) | None => question.to_owned(),
                }
            }
            Ask::Decide { question, decisions } => self.decide(question, decisions),
            Ask::WhichPerson { names } => {
                let names: Vec<Text> = names.iter().map(|name| name.as_str().into()).collect();
                format!("{} people match. Which one: {}?", names.len(), self.list(&names, "or"))
            }
            Ask::Which { labels, total } => {
                let labels = self.list(labels, "or");
                format!("{total} match. Which one: {labels}?")
            }
        }
    }

    fn recheck(&self, prompt: &Text, value: Option<&str>) -> String {
        let prompt = self.text(prompt);
        match value {
            Some(value) => {
                format!("A value changed, so please check again. It was {value}. {prompt}")
            }
            None => format!("A value changed, so please check again. {prompt}"),
        }
    }

    fn decide(&self, question: &Text, decisions: &[Text]) -> String {
        let question = self.text(question);
        if decisions.is_empty() {
            question.to_owned()
        } else {
            format!("{question} A supervisor can say: {}.", self.list(decisions, "or"))
        }
    }
}
